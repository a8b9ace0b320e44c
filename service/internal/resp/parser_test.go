package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// parse feeds parts as a connection does, and returns the commands before the first error.
// left is how many bytes are kept at most.
func parse(parts ...string) (commands []string, failed string, left int) {
	var p parser
	var in []byte
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), maxCommand-len(in))
			in, part = append(in, part[:n]...), part[n:]
			pos := 0
			for pos < len(in) {
				args, n, err := p.next(in[pos:])
				if err == nil && n == 0 && pos == 0 && len(in) == maxCommand {
					err = errTooLong
				}
				if err != nil {
					return commands, err.Error(), left
				}
				if n == 0 {
					break
				}
				if len(args) > 0 {
					var words []string
					for _, arg := range args {
						words = append(words, string(arg))
					}
					commands = append(commands, strings.Join(words, "|"))
				}
				pos += n
			}
			in = slices.Delete(in, 0, pos)
			left = max(left, len(in))
		}
	}
	return commands, "", left
}

// TestParser has commands and bad input. Each comes whole, byte by byte, and cut in two at
// every place.
func TestParser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		commands string // with spaces between
		failed   string // the end of the error
	}{
		{"a pipeline", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$2\r\nID\r\nID\r\n*1\r\n$2\r\nID\r\n", "INCR|a ID ID ID", ""},
		{"an empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO|", ""},
		{"bytes of the protocol in an argument", "*2\r\n$4\r\nECHO\r\n$8\r\n*1\r\n$0\r\n\r\n", "ECHO|*1\r\n$0\r\n", ""},
		{"commands without arguments", "*0\r\n*-1\r\n*-5\r\n\r\n\n \t\r\nID\r\n", "ID", ""},
		{"inline", "INCR \t orders\r\nID\nGET key\r\nget a\n", "INCR|orders ID GET|key get|a", ""},
		{"half a command", "*1\r\n$4\r\nPI", "", ""},
		{"the longest", "*2\r\n$4096\r\n" + strings.Repeat("a", 4096) + "\r\n$1\r\na\r\n", strings.Repeat("a", 4096) + "|a", ""},
		{"the longest line", "a b" + strings.Repeat(" ", 4093) + "\n", "a|b", ""},

		{"2^31 arguments", "*2147483648\r\n", "", "2147483648 arguments: at most 64"},
		{"2^63 arguments", "*9223372036854775808\r\n", "", "more than 64 arguments"},
		{"one too many arguments", "*65\r\n", "", "65 arguments: at most 64"},
		{"one byte too many", "*1\r\n$4097\r\n", "", "4097 bytes in an argument: at most 4096"},
		{"a negative length", "*1\r\n$-1\r\n", "", "an argument of -1 bytes"},
		{"endless digits", "*" + strings.Repeat("1", 1000), "", "more than 64 arguments"},
		{"no digits", "*\r\n", "", `the number of arguments has "\r"`},
		{"a bare line feed", "*1\n", "", `the number of arguments has "\n"`},
		{"no line feed", "*1\rx", "", "expected a line feed after the number of arguments, got \"x\""},
		{"nested arrays", strings.Repeat("*1\r\n", 1_000), "", "expected '$', got \"*\""},
		{"an integer as an argument", "*1\r\n:1\r\n", "", "expected '$', got \":\""},
		{"an argument that is longer", "*1\r\n$2\r\nIDS\r\n", "", "an argument of 2 bytes does not end there"},
		{"an argument that is shorter", "*1\r\n$3\r\nID\r\n\r\n", "", "an argument of 3 bytes does not end there"},
		{"a long command", "*5\r\n" + strings.Repeat("$4096\r\n"+strings.Repeat("a", 4096)+"\r\n", 5), "", "a command of more than 16384 bytes"},
		{"a long line", strings.Repeat("a", 4097), "", "a line of more than 4096 bytes"},
		{"many words", strings.Repeat("a ", 65) + "\n", "", "more than 64 arguments"},
		{"TLS", "\x16\x03\x01\x02\nID\r\n", "", "a line with the byte 0x16"},
		{"a zero", "ID\x00\r\n", "", "a line with the byte 0x00"},
		{"a carriage return within", "ID\rID\n", "", "a line with the byte 0x0d"},
		{"HTTP", "GET / HTTP/1.1\r\nID\r\n", "", "not of HTTP"},
		{"HTTP 0.9", "GET /a\r\nID\r\n", "", "not of HTTP"},
		{"HTTP whose method is a command", "INCR /a http/1.1\r\nID\r\n", "", "not of HTTP"},
		{"POST and nothing else", "post\r\nID\r\n", "", "not of HTTP"},
		{"a header", "Host: a\r\nID\r\n", "", "not of HTTP"},
		{"HTTP after a command", "ID\r\nPUT / HTTP/1.1\r\nID\r\n", "ID", "not of HTTP"},
		{"a long URL", "GET /" + strings.Repeat("a", 5000) + " HTTP/1.1\r\nID\r\n", "", "a line of more than 4096 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(parts ...string) bool {
				commands, failed, left := parse(parts...)
				ok := assert.Equal(t, test.commands, strings.Join(commands, " "), "%q", parts)
				if test.failed == "" {
					ok = assert.Empty(t, failed, "%q", parts) && ok
				} else {
					ok = assert.True(t, strings.HasPrefix(failed, "Protocol error: ") && strings.HasSuffix(failed, test.failed), "%q: %s", parts, failed) && ok
				}
				return assert.LessOrEqual(t, left, maxCommand) && ok
			}
			check(test.in)
			check(strings.Split(test.in, "")...)
			for i := range min(len(test.in), 200) {
				if !check(test.in[:i], test.in[i:]) {
					return
				}
			}
		})
	}
}
