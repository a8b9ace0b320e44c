package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

const id = "$<N>\n<N>\n"

// TestCommands has the bytes of every command in both versions of the protocol. All commands
// of one case come on one connection, after HELLO in version 3.
func TestCommands(t *testing.T) {
	t.Parallel()
	hello := func(version string) string {
		return "$6\nserver\n$9\ntickflake\n$7\nversion\n$5\n7.0.0\n$5\nproto\n:" + version +
			"\n$2\nid\n:<N>\n$4\nmode\n$10\nstandalone\n$4\nrole\n$6\nmaster\n$7\nmodules\n*0\n"
	}
	fields := "$2\nid\n$<N>\n<N>\n$4\ntime\n$24\n<T>\n$4\nnode\n$1\n1\n$8\nsequence\n$1\n0\n"
	for _, test := range []struct{ name, in, two, three string }{
		{"an ID", array("ID"), id, id},
		{"an ID above one", array("ID", "AFTER", "5") + "id after 0\r\n", id + id, id + id},
		{"an ID above one too far ahead", array("ID", "AFTER", "9123372036854775807") + array("ID", "AFTER", "9223372036854775807"), "-TRYAGAIN IDs above the seen ID <any>\n-ERR the layout has no ID above <any>\n", ""},
		{"an ID above none", array("ID", "AFTER", "x") + array("ID", "AFTER") + array("ID", "BEFORE", "1"), "-ERR decimal ID <any>\n-ERR syntax error in ID: <any>\n-ERR syntax error in ID: <any>\n", ""},
		{"IDs", array("IDS", "2"), "*2\n" + id + id, "*2\n" + id + id},
		{"a number of IDs that is none", array("IDS", "x"), "-ERR n \"x\" is not an integer or out of range: <any>\n", ""},
		{"DECODE", array("DECODE", "250322690530082816"), "*8\n" + fields, "%4\n" + fields},
		{"DECODE of no ID", array("DECODE", "x1"), "-ERR <any>\n", ""},

		{"numbers", array("INCR", "orders") + array("INCRBY", "orders", "10") + array("incr", "orders"), ":1\n:11\n:12\n", ":1\n:11\n:12\n"},
		{"an amount below 1", array("INCRBY", "o", "-1"), "-ERR asked for -1 numbers: want 1 to 1000000 in one request\n", ""},
		{"GET", array("INCR", "orders") + array("GET", "orders"), ":1\n$2\n<N>\n", ":1\n$2\n<N>\n"},
		{"GET of a sequence to come", array("GET", "orders"), "$-1\n", "_\n"},

		{"GET of one by period", array("GET", "bills"), "-ERR sequence bills: the sequence is by period, yearly: <any>\n", ""},
		{"GET of a period without a number", array("GET", "bills.2030"), "-ERR sequence \"bills.2030\": no such sequence: its first number makes it<any>\n", ""},

		{"PING", array("PING") + array("PING", "a\r\nb") + "ping x\r\n", "+PONG\n$4\na\nb\n$1\nx\n", "+PONG\n$4\na\nb\n$1\nx\n"},
		{"ECHO", array("ECHO", ""), "$0\n\n", "$0\n\n"},
		{"SELECT", array("SELECT", "0") + array("SELECT", "1"), "+OK\n-ERR DB index is out of range: this server has database 0\n", ""},
		{"QUIT", array("QUIT") + array("PING"), "+OK\n", "+OK\n"},
		{"RESET", array("HELLO", "3", "SETNAME", "n") + array("RESET") + array("CLIENT", "GETNAME"), "%7\n" + hello("3") + "+RESET\n$-1\n", ""},
		{"HELLO", array("HELLO"), "*14\n" + hello("2"), "%7\n" + hello("3")},
		{"HELLO of another version", array("HELLO", "4"), "-NOPROTO unsupported protocol version: this server speaks 2 and 3\n", ""},
		{"HELLO with half of AUTH", array("HELLO", "3", "AUTH", "x"), "-ERR syntax error in HELLO: want HELLO [version [AUTH name token] [SETNAME name]]\n", ""},
		{"AUTH without clients", array("AUTH", "x"), "-ERR AUTH was sent, but this server has no tokens: <any>\n", ""},
		{"CLIENT", array("CLIENT", "SETINFO", "LIB-NAME", "x") + array("CLIENT", "setname", "me") + array("CLIENT", "GETNAME") + array("CLIENT", "ID"), "+OK\n+OK\n$2\nme\n:<N>\n", "+OK\n+OK\n$2\nme\n:<N>\n"},
		{"CLIENT TRACKING", array("CLIENT", "TRACKING", "ON", "optin") + array("CLIENT", "TRACKING", "off"), "+OK\n+OK\n", ""},
		{"CLIENT TRACKING of what would grow old", array("CLIENT", "TRACKING", "ON") + array("CLIENT", "TRACKING", "ON", "BCAST") + array("CLIENT", "CACHING", "YES"), "-ERR CLIENT TRACKING ON works with OPTIN only: <any>\n-ERR CLIENT TRACKING <any>\n-ERR this server does not tell <any>\n", ""},
		{"CLIENT of no kind", array("CLIENT", "KILL", "x"), "-ERR unknown or incomplete subcommand of CLIENT \"KILL\": <any>\n", ""},
		{"a bad CLIENT SETNAME", array("CLIENT", "SETNAME", "a\nb"), "-ERR Client names <any>\n", ""},
		{"CONFIG GET of several", array("CONFIG", "GET", "APPENDONLY", "databases", "x"), "*4\n$10\nappendonly\n$2\nno\n$9\ndatabases\n$1\n1\n", "%2\n$10\nappendonly\n$2\nno\n$9\ndatabases\n$1\n1\n"},
		{"COMMAND", array("COMMAND") + array("COMMAND", "DOCS"), "*0\n*0\n", "*0\n%0\n"},
		{"CONFIG SET", array("CONFIG", "SET", "save", "1"), "-ERR this server has CONFIG GET only: <any>\n", ""},
		{"INFO", array("INFO") + array("INFO", "server"), "$<N>\n# Server\nredis_version:<any>\nloading:0\n<any>\nready:1\nclock_error:<any>\nstore:memory\ncopies_noticed_by:nothing\n<any>\nsequences_open:<N>\n<any>$<N>\n# Server\n<any>", ""},

		{"too few arguments", array("INCR"), "-ERR wrong number of arguments for 'incr' command\n", ""},
		{"an empty command", "*0\r\n*-1\r\n\r\n  \r\n" + array("PING"), "+PONG\n", "+PONG\n"},
		{"unknown and strange", array("a'\r\n\x00\xff"), "-ERR unknown command \"a'\\r\\n\\x00\\xff\"\n", ""},
		{"unknown and long", array(strings.Repeat("x", 4000)), "-ERR unknown command \"" + strings.Repeat("x", 64) + "\"\n", ""},
		{"refused by name", array("set", "a", "secret") + array("DECR", "a"), "-ERR SET is not supported: numbers are given out once and never taken back: use INCR, INCRBY and GET\n-ERR DECR is not supported: numbers are given out once <any>\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, nil)
			matches(t, test.two, b.run(test.in))
			b = newBed(t, nil)
			three := test.three
			if three == "" {
				three = test.two
			}
			got := b.run(array("HELLO", "3") + test.in)
			_, got, _ = strings.Cut(got, "modules\r\n*0\r\n")
			matches(t, three, got)
		})
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	clients := func(c *issuer.Config) {
		c.Clients = []*issuer.Client{
			client("shop", issuer.Rights{IDs: true, Sequences: []string{"*"}}), client("blog", issuer.Rights{Sequences: []string{"orders"}}),
		}
	}
	refused := "-NOAUTH a token is needed: send AUTH TOKEN first\n"
	for _, test := range []struct{ name, in, want string }{
		{"nothing without a token", array("ID") + array("IDS", "1") + array("INCR", "orders") + array("GET", "orders") + array("DECODE", "1") + array("PING") + array("INFO") + array("COMMAND") + array("CONFIG", "GET", "save") + array("CLIENT", "ID"), strings.Repeat(refused, 10)},
		{"HELLO without a token", array("HELLO", "3") + array("PING"), refused + refused},
		{"a token", array("AUTH", "token-shop") + array("ID"), "+OK\n" + id},
		{"the name that clients send by default", array("AUTH", "default", "token-shop") + array("ID"), "+OK\n" + id},
		{"another's name", array("AUTH", "blog", "token-shop") + array("ID"), "-WRONGPASS the token is not that of the name\n" + refused},
		{"HELLO", array("HELLO", "3", "AUTH", "default", "token-shop", "SETNAME", "me") + array("CLIENT", "GETNAME"), "%7\n<any>*0\n$2\nme\n"},
		{"HELLO with a wrong token", array("HELLO", "3", "AUTH", "default", "token-none") + array("HELLO", "2"), "-WRONGPASS the token is not known\n-NOAUTH <any>\n"},
		{"RESET takes it away", array("AUTH", "token-shop") + array("RESET") + array("ID"), "+OK\n+RESET\n" + refused},
		{"a wrong token leaves the first", array("AUTH", "token-shop") + array("AUTH", "token-none") + array("ID"), "+OK\n-WRONGPASS the token is not known\n" + id},
		{"INFO of what it may use", array("AUTH", "token-shop") + array("INCR", "others") + array("AUTH", "token-blog") + array("INCR", "orders") + array("INFO"), "+OK\n:1\n+OK\n:1\n$<N>\n<any>sequences_open:1\n<any>real time\nsequence_orders:<any>"},
		{"no token in errors", array("AUHT", "token-shop") + "hello 3 auth token-shop\r\n" + array("HELLO", "3", "AUTH", "token-shop"), "-ERR unknown command \"AUHT\"\n-ERR syntax error in HELLO: <any>\n-ERR syntax error in HELLO: <any>\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newBed(t, clients).run(test.in)
			matches(t, test.want, got)
			assert.NotContains(t, got, "token-")
		})
	}
}

// TestErrorsAreLines: no text makes two lines of an error, or a long one.
func TestErrorsAreLines(t *testing.T) {
	t.Parallel()
	var r reply
	r.fail("ERR", "a\r\n+OK\x00\x1b"+strings.Repeat("x", 5000))
	assert.Equal(t, "-ERR a  +OK  "+strings.Repeat("x", 992)+"\r\n", string(r.b))
}

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
