package resp

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// malformed returns the reason why a connection is closed: what it sent cannot be followed by
// a next command.
func malformed(format string, args ...any) error {
	return fmt.Errorf("Protocol error: "+format, args...)
}

var errTooLong = malformed("a command of more than %d bytes", limit.Command)

// parser finds commands in bytes. It keeps nothing but the slice for the arguments, so
// commands do not depend on how the bytes were split on their way. The caller gives it no more than
// limit.Command bytes.
type parser struct{ args [][]byte }

// next returns the arguments of the first command in in, and how many bytes it has. The
// arguments are parts of in, and are overwritten by the next call. A command of 0 bytes is
// not complete yet. A command without arguments is skipped by Redis, and by its clients.
func (p *parser) next(in []byte) (args [][]byte, n int, err error) {
	if len(in) == 0 {
		return nil, 0, nil
	}
	if in[0] == '\r' && len(in) < 2 {
		return nil, 0, nil
	}
	if in[0] == '\r' && in[1] == '\n' { // as redis-cli sends it after a pipeline
		return nil, 2, nil
	}
	if in[0] != '*' { // such as HTTP, whose body could hold commands; TLS; or PROXY, after which each reply would be another command's
		return nil, 0, malformed("expected '*', got %s: this is the port of the Redis protocol, without TLS, HTTP and PROXY before it", printable(in[:1]))
	}
	count, n, err := number(in, "arguments", limit.Arguments)
	if n == 0 || err != nil {
		return nil, 0, err
	}
	p.args = p.args[:0]
	for range count {
		rest := in[n:]
		if len(rest) == 0 {
			return nil, 0, nil
		}
		if rest[0] != '$' {
			return nil, 0, malformed("expected '$', got %s", printable(rest[:1]))
		}
		length, header, err := number(rest, "bytes in an argument", limit.Argument)
		if header == 0 || err != nil {
			return nil, 0, err
		}
		if length < 0 {
			return nil, 0, malformed("an argument of %d bytes", length)
		}
		end := header + int(length)
		// What is there of the line's end is checked at once: a wrong one is never completed.
		for i, want := range []byte("\r\n") {
			if end+i < len(rest) && rest[end+i] != want {
				return nil, 0, malformed("an argument of %d bytes does not end there", length)
			}
		}
		if end+2 > len(rest) {
			return nil, 0, nil
		}
		p.args = append(p.args, rest[header:end:end])
		n += end + 2
	}
	return p.args, n, nil
}

// number returns the number of a header, "*3\r\n" or "$12\r\n", and the length of the header,
// which is 0 if the header is not complete.
func number(in []byte, what string, most int64) (value int64, n int, err error) {
	const longest = len("$-2147483648\r\n")
	head, i, sign := in[:min(len(in), longest)], 1, int64(1)
	if len(head) > 1 && head[1] == '-' {
		i, sign = 2, -1
	}
	digits := i
	for ; i < len(head) && head[i] >= '0' && head[i] <= '9'; i++ {
		value = value*10 + sign*int64(head[i]-'0')
	}
	if i > digits && i+1 < len(head) && head[i] == '\r' && head[i+1] == '\n' && value <= most {
		return value, i + 2, nil
	}
	n = bytes.IndexByte(head, '\n') + 1
	if n == 0 && len(in) < longest {
		return 0, 0, nil
	}
	return 0, 0, malformed("%s: want a number of %s up to %d, and CRLF", printable(head[:cmp.Or(n, longest)]), what, most)
}

// printable returns the first bytes of b in quotes, safe in a log and on a terminal.
func printable(b []byte) string { return fmt.Sprintf("%+.64q", b) }

// reply collects replies.
type reply struct{ b []byte }

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
	r.b = append(r.b, '-')
	r.b = append(r.b, code...)
	r.b = append(r.b, ' ')
	for i := range min(len(text), 1000) {
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
