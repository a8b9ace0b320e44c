package resp

import (
	"strconv"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// reply collects replies in either version of the protocol.
type reply struct {
	b     []byte
	three bool // RESP3
}

func (r *reply) line(kind byte, text string) {
	r.b = append(r.b, kind)
	r.b = append(r.b, text...)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) header(kind byte, n int64) {
	r.b = append(r.b, kind)
	r.b = strconv.AppendInt(r.b, n, 10)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) ok()             { r.line('+', "OK") }
func (r *reply) integer(n int64) { r.header(':', n) }
func (r *reply) array(n int)     { r.header('*', int64(n)) }

// pairs begins a map of n keys with their values. In RESP2 it is an array of both.
func (r *reply) pairs(n int) {
	if r.three {
		r.header('%', int64(n))
	} else {
		r.header('*', int64(2*n))
	}
}

func (r *reply) null() {
	if r.three {
		r.line('_', "")
	} else {
		r.line('$', "-1")
	}
}

func (r *reply) bulk(text string) {
	r.header('$', int64(len(text)))
	r.b = append(r.b, text...)
	r.b = append(r.b, '\r', '\n')
}

// all writes texts as bulk strings, and numbers as integers.
func (r *reply) all(values ...any) {
	for _, value := range values {
		switch v := value.(type) {
		case string:
			r.bulk(v)
		case int64:
			r.integer(v)
		}
	}
}

// decimal writes n as a bulk string, which keeps all its bits in every language.
func (r *reply) decimal(n int64) {
	var digits [20]byte
	r.bulk(string(strconv.AppendInt(digits[:0], n, 10))) // no string is made
}

// fail writes an error. Clients read its first word.
func (r *reply) fail(code, text string) {
	const most = 1000
	r.b = append(r.b, '-')
	r.b = append(r.b, code...)
	r.b = append(r.b, ' ')
	for i := range min(len(text), most) {
		c := text[i]
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		r.b = append(r.b, c)
	}
	r.b = append(r.b, '\r', '\n')
}

// refuse writes the error of a request.
func (r *reply) refuse(err error) {
	refusal := issuer.RefusalOf(err)
	r.fail(refusal.Code.Words().RESP, refusal.Error())
}
