package service_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
)

var command = servicetest.Command

// matches checks replies of the Redis protocol against a text in which <N> stands for a number, <T> for a time, and <any> for
// anything. Lines end with a line feed there.
func matches(t *testing.T, want, got string) {
	t.Helper()
	pattern := regexp.QuoteMeta(strings.ReplaceAll(want, "\n", "\r\n"))
	pattern = strings.NewReplacer("<N>", `\d+`, "<T>", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "<any>", `(?s:.*)`).Replace(pattern)
	assert.Regexp(t, "^"+pattern+"$", got)
}

const id = "$<N>\n<N>\n"

// TestCommands has the bytes of every command in both versions of the protocol.
func TestCommands(t *testing.T) {
	t.Parallel()
	r := start(t, listen, func(c *service.Config) { c.StoreName = "memory" })
	require.NoError(t, sequence.Create(t.Context(), r.store, "bills", sequence.Definition{Period: sequence.Yearly}))
	hello := func(version string) string {
		return "$6\nserver\n$9\ntickflake\n$7\nversion\n$5\n7.0.0\n$5\nproto\n:" + version +
			"\n$2\nid\n:<N>\n$4\nmode\n$10\nstandalone\n$4\nrole\n$6\nmaster\n$7\nmodules\n*0\n"
	}
	fields := "$2\nid\n$<N>\n<N>\n$4\ntime\n$24\n<T>\n$4\nnode\n$1\n1\n$8\nsequence\n$1\n0\n"
	for _, test := range []struct{ name, in, two, three string }{
		{"an ID", command("ID"), id, id},
		{"an ID above one", command("ID", "AFTER", "5") + command("id", "after", "0"), id + id, id + id},
		{"an ID above one too far ahead", command("ID", "AFTER", "9123372036854775807") + command("ID", "AFTER", "9223372036854775807"), "-TRYAGAIN IDs above the seen ID <any>\n-ERR the layout has no ID above <any>\n", ""},
		{"an ID above none", command("ID", "AFTER", "x") + command("ID", "AFTER") + command("ID", "BEFORE", "1"), "-ERR decimal ID <any>\n-ERR syntax error in ID: <any>\n-ERR syntax error in ID: <any>\n", ""},
		{"IDs", command("IDS", "2"), "*2\n" + id + id, "*2\n" + id + id},
		{"a number of IDs that is none", command("IDS", "x"), "-ERR n \"x\" is not an integer or out of range: <any>\n", ""},
		{"DECODE", command("DECODE", "250321914289983488"), "*8\n" + fields, "%4\n" + fields},
		{"DECODE of no ID", command("DECODE", "x1"), "-ERR <any>\n", ""},

		{"numbers", command("INCR", "orders-@") + command("INCRBY", "orders-@", "10") + command("incr", "orders-@"), ":1\n:11\n:12\n", ":1\n:11\n:12\n"},
		{"a colon in a key", command("INCR", "orders:a") + command("INCR", "orders.a"), ":<N>\n:<N>\n", ""},
		{"GET", command("INCR", "orders-@1") + command("GET", "orders-@1"), ":1\n$2\n<N>\n", ":1\n$2\n<N>\n"},
		{"GET of a sequence to come", command("GET", "orders-none"), "$-1\n", "_\n"},
		{"GET of none", command("GET", "other"), "-ERR there is no sequence other: create it <any>\n", ""},
		{"GET of one by period", command("GET", "bills"), "-ERR sequence bills: the sequence is by period, yearly: <any>\n", ""},
		{"GET of a period without a number", command("GET", "bills.2030"), "-ERR sequence \"bills.2030\": no such sequence: its first number makes it<any>\n", ""},

		{"PING and ECHO", command("PING") + command("PING", "a\r\nb") + command("ECHO", ""), "+PONG\n$4\na\nb\n$0\n\n", "+PONG\n$4\na\nb\n$0\n\n"},
		{"HELLO", command("HELLO"), "*14\n" + hello("2"), "%7\n" + hello("3")},
		{"HELLO of another version", command("HELLO", "4") + command("HELLO", "x"), "-NOPROTO unsupported protocol version: this server speaks 2 and 3\n-NOPROTO <any>\n", ""},
		{"HELLO with half of AUTH", command("HELLO", "3", "AUTH", "x"), "-ERR syntax error in HELLO: want HELLO [version [AUTH name token] [SETNAME name]]\n", ""},
		{"AUTH without clients", command("AUTH", "x"), "-ERR AUTH was sent, but this server has no tokens: <any>\n", ""},
		{"CLIENT", command("CLIENT", "SETINFO", "LIB-NAME", "x") + command("CLIENT", "setname", "me") + command("CLIENT", "TRACKING", "ON", "optin") + command("CLIENT", "ID"), "+OK\n+OK\n+OK\n:<N>\n", "+OK\n+OK\n+OK\n:<N>\n"},
		{"CLIENT that would keep answers", command("CLIENT", "TRACKING", "ON") + command("CLIENT", "CACHING", "YES"), "-ERR unknown subcommand of CLIENT \"TRACKING\": <any>\n-ERR unknown subcommand of CLIENT \"CACHING\": <any>\n", ""},
		{"INFO", command("INFO", "server"), "$<N>\n# Server\nredis_version:<any>\nloading:0\n<any>\nready:1\nclock_error:<any>\nstore:memory\ncopies_noticed_by:nothing\n<any>", ""},

		{"too few arguments, and too many", command("INCR") + command("QUIT", "x"), "-ERR wrong number of arguments for 'incr' command\n-ERR wrong number of arguments for 'quit' command\n", ""},
		{"unknown and strange", command("a'\r\n\x00\xff"), "-ERR unknown command \"a'\\r\\n\\x00\\xff\": this is tickflake serve, and no store: it has ID, IDS, DECODE, INCR, INCRBY and GET\n", ""},
		{"unknown and long", command(strings.Repeat("x", 4000)), "-ERR unknown command \"" + strings.Repeat("x", 64) + "\": <any>\n", ""},
	} {
		for version, want := range map[string]string{"2": test.two, "3": test.three} {
			t.Run(test.name+"/"+version, func(t *testing.T) {
				if want == "" {
					want = test.two
				}
				in := strings.ReplaceAll(test.in, "@", version) // of the same length
				got := r.exchange(command("HELLO", version) + in + command("QUIT") + command("PING"))
				_, got, _ = strings.Cut(got, "modules\r\n*0\r\n")
				matches(t, want+"+OK\n", got)
			})
		}
	}
}

// A connection has the rights of the last token that was known on it.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	const refused = "-NOAUTH a token is needed: send AUTH TOKEN first\n"
	r := start(t, listen, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Tokens: []string{shop}}, {Name: "numbers", Tokens: []string{numbers}, Sequences: []string{"orders"}, NoIDs: true}}
	})
	for name, test := range map[string]struct{ in, want string }{
		"nothing without a token":               {command("ID") + command("INCR", "orders") + command("PING") + command("INFO") + command("CLIENT", "ID") + command("HELLO", "3"), strings.Repeat(refused, 6)},
		"a token":                               {command("AUTH", shop) + command("ID"), "+OK\n" + id},
		"the name that clients send by default": {command("AUTH", "default", shop) + command("ID"), "+OK\n" + id},
		"another's name":                        {command("AUTH", "numbers", shop) + command("ID"), "-WRONGPASS the token is not that of the name\n" + refused},
		"HELLO":                                 {command("HELLO", "3", "AUTH", "shop", shop, "SETNAME", "me") + command("ID"), "%7\n<any>*0\n" + id},
		"HELLO with a wrong token":              {command("HELLO", "3", "AUTH", "default", stray) + command("HELLO", "2"), "-WRONGPASS the token is not known\n" + refused},
		"a wrong token leaves the first":        {command("AUTH", shop) + command("AUTH", stray) + command("ID"), "+OK\n-WRONGPASS the token is not known\n" + id},
		"another token":                         {command("AUTH", shop) + command("AUTH", numbers) + command("ID"), "+OK\n+OK\n-NOPERM client numbers may not take IDs\n"},
		"no token in errors":                    {command("AUHT", shop) + command("HELLO", "3", "AUTH", shop), "-ERR unknown command \"AUHT\": <any>\n-ERR syntax error in HELLO: <any>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.exchange(test.in + command("QUIT"))
			matches(t, test.want+"+OK\n", got)
			assert.NotContains(t, got, shop)
		})
	}
}
