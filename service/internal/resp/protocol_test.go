package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/service/servicetest"
)

// parse returns the commands of a stream that comes in parts, a line each with its arguments in quotes, and the error after
// them, as a connection reads them.
func parse(parts ...string) (commands string, failed string) {
	var p parser
	in := make([]byte, limit.Command)
	have := 0
	for _, part := range parts {
		for part != "" {
			n := copy(in[have:], part)
			part, have = part[n:], have+n
			for pos, done := 0, false; !done; {
				args, n, err := p.next(in[pos:have])
				if err == nil && n == 0 && pos == 0 && have == len(in) {
					err = errTooLong
				}
				if err != nil {
					return commands, strings.TrimPrefix(err.Error(), "Protocol error: ")
				}
				if pos, done = pos+n, n == 0; done {
					have = copy(in, in[pos:have])
				} else if len(args) > 0 {
					for _, arg := range args {
						commands += string(arg) + "|"
					}
					commands += "\n"
				}
			}
		}
	}
	return commands, ""
}

// TestParser has commands and bad input. Each comes whole, byte by byte, and cut in two at every place.
func TestParser(t *testing.T) {
	t.Parallel()
	const other = "this is the port of the Redis protocol, without TLS, HTTP and PROXY before it"
	long := strings.Repeat("a", limit.Argument)
	for _, test := range []struct {
		name, in string
		commands string
		failed   string // the error after them
	}{
		{"a pipeline", "*2\r\n$4\r\nECHO\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n", "ECHO|a|\nPING|\n", ""},
		{"an empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO||\n", ""},
		{"bytes of the protocol in an argument", "*2\r\n$4\r\nECHO\r\n$8\r\n*1\r\n$0\r\n\r\n", "ECHO|*1\r\n$0\r\n|\n", ""},
		{"commands without arguments", "*0\r\n*-1\r\n\r\n\r\n*1\r\n$4\r\nPING\r\n", "PING|\n", ""},
		{"half a command", "*1\r\n$4\r\nPI", "", ""},
		{"the longest argument", "*1\r\n$4096\r\n" + long + "\r\n", long + "|\n", ""},

		{"2^31 arguments", "*2147483648\r\n", "", `"*2147483648\r\n": want a number of arguments up to 64, and CRLF`},
		{"2^63 arguments", "*9223372036854775808\r\n", "", `"*9223372036854": want a number of arguments up to 64, and CRLF`},
		{"one too many arguments", "*65\r\n", "", `"*65\r\n": want a number of arguments up to 64, and CRLF`},
		{"one byte too many", "*1\r\n$4097\r\n", "", `"$4097\r\n": want a number of bytes in an argument up to 4096, and CRLF`},
		{"a negative length", "*1\r\n$-1\r\n", "", "an argument of -1 bytes"},
		{"endless digits", "*" + strings.Repeat("1", 1000), "", `"*1111111111111": want a number of arguments up to 64, and CRLF`},
		{"no digits", "*\r\n", "", `"*\r\n": want a number of arguments up to 64, and CRLF`},
		{"a bare line feed", "*1\n\n", "", `"*1\n": want a number of arguments up to 64, and CRLF`},
		{"a plus", "*+1\r\n", "", `"*+1\r\n": want a number of arguments up to 64, and CRLF`},
		{"nested arrays", strings.Repeat("*1\r\n", 1_000), "", "expected '$', got \"*\""},
		{"an integer as an argument", "*1\r\n:1\r\n", "", "expected '$', got \":\""},
		{"an argument that is longer", "*1\r\n$2\r\nIDS\r\n", "", "an argument of 2 bytes does not end there"},
		{"an argument that is shorter", "*1\r\n$3\r\nPING\r\n\r\n", "", "an argument of 3 bytes does not end there"},
		{"a long command", "*5\r\n" + strings.Repeat("$4096\r\n"+long+"\r\n", 5), "", "a command of more than 16384 bytes"},
		{"TLS", "\x16\x03\x01\x02\n*1\r\n$4\r\nPING\r\n", "", `expected '*', got "\x16": ` + other},
		{"HTTP", "POST / HTTP/1.1\r\n\r\n*1\r\n$4\r\nPING\r\n", "", `expected '*', got "P": ` + other},
		{"HTTP after a command", "*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\n", "PING|\n", `expected '*', got "G": ` + other},
		{"PROXY, version 2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c*1\r\n$4\r\nPING\r\n", "", `expected '*', got "\x00": ` + other},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(parts ...string) {
				commands, failed := parse(parts...)
				assert.Equal(t, test.commands, commands)
				assert.Equal(t, test.failed, failed)
			}
			check(test.in)
			check(strings.Split(test.in, "")...)
			for i := range min(len(test.in), 200) {
				check(test.in[:i], test.in[i:])
			}
		})
	}
}

// FuzzParser: whatever a client sends, what it means does not depend on the parts in which it comes.
func FuzzParser(f *testing.F) {
	f.Add(servicetest.Command("HELLO", "3")+servicetest.Command("INCRBY", "o", "9")+"*0\r\n", uint16(3))
	f.Add("*2147483648\r\n", uint16(1))
	f.Add("*3\r\n$3\r\nSET\r\n$-1\r\nkey\r\n*1\r\n$2\r\nIDS\r\n", uint16(7))
	f.Fuzz(func(t *testing.T, in string, step uint16) {
		var parts []string
		for rest := in; rest != ""; {
			step = step*25173 + 13849
			n := min(len(rest), 1+int(step>>8)%23)
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		commands, failed := parse(in)
		split, splitFailed := parse(parts...)
		assert.Equal(t, commands, split)
		assert.Equal(t, failed, splitFailed)
	})
}

// No text makes two lines of an error, or a long one.
func TestErrorsAreLines(t *testing.T) {
	t.Parallel()
	var r reply
	r.fail("ERR", "a\r\n+OK\x00\x1b"+strings.Repeat("x", 5000))
	assert.Equal(t, "-ERR a  +OK  "+strings.Repeat("x", 992)+"\r\n", string(r.b))
}
