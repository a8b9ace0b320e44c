package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var testLimits = Limits{Argument: 20, Arguments: 4, Command: 60, Inline: 30}

// parse feeds parts as a connection does, and returns the commands before the first error.
// left is how many bytes are kept at most.
func parse(limits *Limits, parts ...string) (commands []string, failed string, left int) {
	p := parser{limits: limits}
	var in []byte
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), limits.Command-len(in))
			in, part = append(in, part[:n]...), part[n:]
			pos := 0
			for pos < len(in) {
				args, n, err := p.next(in[pos:])
				if err == nil && n == 0 && pos == 0 && len(in) == limits.Command {
					err = p.tooLong()
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
		{"a command", "*1\r\n$4\r\nPING\r\n", "PING", ""},
		{"a pipeline", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$2\r\nID\r\nID\r\n*1\r\n$2\r\nID\r\n", "INCR|a ID ID ID", ""},
		{"an empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO|", ""},
		{"bytes of the protocol in an argument", "*2\r\n$4\r\nECHO\r\n$8\r\n*1\r\n$0\r\n\r\n", "ECHO|*1\r\n$0\r\n", ""},
		{"commands without arguments", "*0\r\n*-1\r\n*-5\r\n\r\n\n \t\r\nID\r\n", "ID", ""},
		{"inline", "INCR \t orders\r\nID\nGET key\r\nget a\n", "INCR|orders ID GET|key get|a", ""},
		{"half a command", "*1\r\n$4\r\nPI", "", ""},
		{"half a line", "PIN", "", ""},
		{"the longest", "*4\r\n$20\r\n" + strings.Repeat("a", 20) + "\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n", strings.Repeat("a", 20) + "|a|a|a", ""},
		{"the longest line", strings.Repeat("a ", 2) + "b" + strings.Repeat(" ", 25) + "\n", "a|a|b", ""},

		{"2^31 arguments", "*2147483648\r\n", "", "2147483648 arguments: at most 4"},
		{"2^63 arguments", "*9223372036854775808\r\n", "", "more than 4 arguments"},
		{"one too many arguments", "*5\r\n", "", "5 arguments: at most 4"},
		{"2^31 bytes", "*1\r\n$2147483648\r\n", "", "2147483648 bytes in an argument: at most 20"},
		{"one byte too many", "*1\r\n$21\r\n", "", "21 bytes in an argument: at most 20"},
		{"a negative length", "*1\r\n$-1\r\n", "", "an argument of -1 bytes"},
		{"endless digits", "*" + strings.Repeat("1", 1000), "", "more than 4 arguments"},
		{"endless zeros", "*1\r\n$" + strings.Repeat("0", 1000), "", "more than 20 bytes in an argument"},
		{"no digits", "*\r\n", "", `the number of arguments has '\x0d'`},
		{"a sign only", "*-\r\n", "", `the number of arguments has '\x0d'`},
		{"no number", "*1x\r\n", "", "the number of arguments has 'x'"},
		{"a plus", "*+1\r\n", "", "the number of arguments has '+'"},
		{"a bare line feed", "*1\n", "", `the number of arguments has '\x0a'`},
		{"no line feed", "*1\rx", "", "expected a line feed after the number of arguments, got 'x'"},
		{"nested arrays", strings.Repeat("*1\r\n", 1_000), "", "expected '$', got '*'"},
		{"an integer as an argument", "*1\r\n:1\r\n", "", "expected '$', got ':'"},
		{"an argument that is longer", "*1\r\n$2\r\nIDS\r\n", "", "an argument of 2 bytes does not end there"},
		{"an argument that is shorter", "*1\r\n$3\r\nID\r\n\r\n", "", "an argument of 3 bytes does not end there"},
		{"a long command", "*4\r\n" + strings.Repeat("$20\r\n"+strings.Repeat("a", 20)+"\r\n", 4), "", "a command of more than 60 bytes"},
		{"a long line", strings.Repeat("a", 31), "", "a line of more than 30 bytes"},
		{"a long word", strings.Repeat("a", 21) + "\n", "", "21 bytes in an argument: at most 20"},
		{"many words", "a b c d e\n", "", "more than 4 arguments"},
		{"TLS", "\x16\x03\x01\x02\nID\r\n", "", "a line with the byte 0x16"},
		{"a zero", "ID\x00\r\n", "", "a line with the byte 0x00"},
		{"a carriage return within", "ID\rID\n", "", "a line with the byte 0x0d"},
		{"HTTP", "GET / HTTP/1.1\r\nID\r\n", "", "not of HTTP"},
		{"HTTP of a path that looks like a key", "GET a HTTP/1.1\r\nID\r\n", "", "not of HTTP"},
		{"HTTP 0.9", "GET /a\r\nID\r\n", "", "not of HTTP"},
		{"HTTP whose method is a command", "INCR /a http/1.1\r\nID\r\n", "", "not of HTTP"},
		{"HTTP 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "not of HTTP"},
		{"POST", "POST / HTTP/1.1\r\n", "", "not of HTTP"},
		{"POST and nothing else", "post\r\nID\r\n", "", "not of HTTP"},
		{"a header", "Host: a\r\nID\r\n", "", "not of HTTP"},
		{"another header", "x-a:ID\r\nID\r\n", "", "not of HTTP"},
		{"HTTP after a command", "ID\r\nPUT / HTTP/1.1\r\nID\r\n", "ID", "not of HTTP"},
		{"a long URL", "GET /" + strings.Repeat("a", 100) + " HTTP/1.1\r\nID\r\n", "", "a line of more than 30 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(parts ...string) bool {
				commands, failed, left := parse(&testLimits, parts...)
				ok := assert.Equal(t, test.commands, strings.Join(commands, " "), "%q", parts)
				if test.failed == "" {
					ok = assert.Empty(t, failed, "%q", parts) && ok
				} else {
					ok = assert.True(t, strings.HasPrefix(failed, "Protocol error: ") && strings.HasSuffix(failed, test.failed), "%q: %s", parts, failed) && ok
				}
				return assert.LessOrEqual(t, left, testLimits.Command) && ok
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

// FuzzParser: commands do not depend on how bytes were split, and no more bytes are kept than
// a command can have.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n", "PING\r\nID\n\r\nGET a\r\n", "*0\r\n*-1\r\n", "*1\r\n$-1\r\n",
		"*4\r\n$20\r\naaaaaaaaaaaaaaaaaaaa\r\n$20\r\naaaaaaaaaaaaaaaaaaaa\r\n$20\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "*2147483648\r\n", "*1\r\n*1\r\n",
	} {
		f.Add(seed, uint16(7))
	}
	f.Fuzz(func(t *testing.T, in string, step uint16) {
		limits := testLimits
		commands, failed, left := parse(&limits, in)
		var parts []string
		for rest := in; rest != ""; {
			// The sizes of the parts follow from step alone.
			step = step*25173 + 13849
			n := min(len(rest), 1+int(step>>8)%11)
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		again, failedAgain, leftAgain := parse(&limits, parts...)
		assert.Equal(t, commands, again)
		assert.Equal(t, failed == "", failedAgain == "", "%q, %q", failed, failedAgain)
		assert.LessOrEqual(t, max(left, leftAgain), limits.Command)
		for _, command := range commands {
			assert.LessOrEqual(t, strings.Count(command, "|"), len(command))
			assert.LessOrEqual(t, len(command), limits.Command)
		}
		if failed != "" {
			assert.NotContains(t, strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' {
					return '!'
				}
				return r
			}, failed), "!!")
			assert.Less(t, len(failed), 300)
		}
	})
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `'a b'`, printable([]byte("a b")))
	assert.Equal(t, `'\x27\x5c\x0d\x0a\x00\x7f\xff\x1b'`, printable([]byte("'\\\r\n\x00\x7f\xff\x1b")))
	assert.Equal(t, "'"+strings.Repeat("x", 64)+"...'", printable([]byte(strings.Repeat("x", 65))))
}
