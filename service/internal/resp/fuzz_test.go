package resp

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/servicetest"
)

// FuzzServer: whatever a client sends, in whatever parts, it gets well-formed replies, no more
// than it sent commands, and the answers do not depend on the parts. The server keeps nothing.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{
		array("HELLO", "3") + array("ID") + array("IDS", "3") + array("DECODE", "250322690530082816") + array("INFO") + array("COMMAND"),
		array("HELLO", "3", "AUTH", "default", "x", "SETNAME", "a") + array("CLIENT", "INFO") + array("RESET"),
		array("INCR", "o") + array("INCRBY", "o", "9") + array("GET", "o") + array("GET", "x") + array("GET", "o1"),
		"PING\r\nPING a\r\nSELECT 0\r\nquit\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nINCR o\r\n", array("CONFIG", "GET", "*") + array("COMMAND", "DOCS"),
		array("COMMAND", "INFO", "get", "none") + array("SET", "a", "b") + array("a'\r\n"), "*2147483648\r\n", strings.Repeat("*1\r\n", 50), "*3\r\n$3\r\nSET\r\n$3\r\nkey",
		strings.Repeat("x", 1001), // more than one command of the limits below
	} {
		f.Add(seed, uint16(3))
	}
	f.Fuzz(func(t *testing.T, in string, step uint16) {
		if len(in) > 1<<14 {
			return
		}
		// INCR makes no sequence here: its store would be the same for both runs.
		b := newBed(t, func(c *issuer.Config) { c.MaxBatch, c.Rules = 50, nil })
		count := func(out string) (n int) {
			replies := bufio.NewReader(strings.NewReader(out))
			for ; ; n++ {
				_, err := servicetest.ReadReply(replies)
				if _, refused := err.(*servicetest.Refusal); err == io.EOF {
					return n
				} else if err != nil && !refused {
					t.Fatalf("%v: %q\n%q", err, in, out)
				}
			}
		}
		whole, split := count(b.run(in)), count(b.run(cut(in, step)...))
		assert.Equal(t, whole, split)
		// The shortest command is a line of one letter.
		assert.LessOrEqual(t, whole, (len(in)+1)/2)
	})
}

// cut cuts a text into small parts, whose sizes follow from step alone.
func cut(in string, step uint16) (parts []string) {
	for in != "" {
		step = step*25173 + 13849
		n := min(len(in), 1+int(step>>8)%23)
		parts, in = append(parts, in[:n]), in[n:]
	}
	return parts
}
