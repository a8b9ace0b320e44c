package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestParser has commands and bad input. Each comes whole, byte by byte, and cut in two at
// every place.
func TestParser(t *testing.T) {
	t.Parallel()
	const notHTTP = "this is the port of the Redis protocol, not of HTTP"
	for _, test := range []struct {
		name, in string
		replies  string
		failed   string // the error after them
	}{
		{"a pipeline", "*2\r\n$4\r\nECHO\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "$1\na\n+PONG\n+PONG\n+PONG\n", ""},
		{"an empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "$0\n\n", ""},
		{"bytes of the protocol in an argument", "*2\r\n$4\r\nECHO\r\n$8\r\n*1\r\n$0\r\n\r\n", "$8\n*1\n$0\n\n", ""},
		{"commands without arguments", "*0\r\n*-1\r\n*-5\r\n\r\n\n \t\r\nPING\r\n", "+PONG\n", ""},
		{"inline", "ECHO \t orders\r\nPING\nGET orders\r\nget o\n", "$6\norders\n+PONG\n$-1\n$-1\n", ""},
		{"half a command", "*1\r\n$4\r\nPI", "", ""},
		{"the longest", "*2\r\n$4\r\nECHO\r\n$4096\r\n" + strings.Repeat("a", 4096) + "\r\n", "$4096\n" + strings.Repeat("a", 4096) + "\n", ""},
		{"the longest line", "ECHO b" + strings.Repeat(" ", 4090) + "\n", "$1\nb\n", ""},

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
		{"a long command", "*5\r\n" + strings.Repeat("$4096\r\n"+strings.Repeat("a", 4096)+"\r\n", 5), "", "a command of more than 16384 bytes"},
		{"a long line", strings.Repeat("a", 4097), "", "a line of more than 4096 bytes"},
		{"many words", strings.Repeat("a ", 65) + "\n", "", "more than 64 arguments"},
		{"TLS", "\x16\x03\x01\x02\nPING\r\n", "", "a line with the byte 0x16"},
		{"a zero", "PING\x00\r\n", "", "a line with the byte 0x00"},
		{"a carriage return within", "PING\rPING\n", "", "a line with the byte 0x0d"},
		{"HTTP", "GET / HTTP/1.1\r\nPING\r\n", "", notHTTP},
		{"HTTP 0.9", "GET /a\r\nPING\r\n", "", notHTTP},
		{"HTTP whose method is a command", "INCR /a http/1.1\r\nPING\r\n", "", notHTTP},
		{"POST and nothing else", "post\r\nPING\r\n", "", notHTTP},
		{"a header", "Host: a\r\nPING\r\n", "", notHTTP},
		{"HTTP after a command", "PING\r\nPUT / HTTP/1.1\r\nPING\r\n", "+PONG\n", notHTTP},
		{"PROXY", "PROXY TCP4 10.0.0.1 10.0.0.2 5 6380\r\nPING\r\n", "", "a line of the PROXY protocol: turn it off for this port"},
		{"PROXY, version 2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0cPING\r\n", "", "a line with the byte 0x00"},
		{"a long URL", "GET /" + strings.Repeat("a", 5000) + " HTTP/1.1\r\nPING\r\n", "", "a line of more than 4096 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, want := newBed(t, nil), strings.ReplaceAll(test.replies, "\n", "\r\n")
			if test.failed != "" {
				want += "-ERR Protocol error: " + test.failed + "\r\n"
			}
			assert.Equal(t, want, b.run(test.in))
			assert.Equal(t, want, b.run(strings.Split(test.in, "")...))
			for i := range min(len(test.in), 200) {
				require.Equal(t, want, b.run(test.in[:i], test.in[i:]), "cut at %d", i)
			}
		})
	}
}
