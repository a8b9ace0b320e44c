package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// hangCommands are the commands with --timeout.
var hangCommands = map[string]string{
	"generate":      "",
	"lease list":    "",
	"lease release": "1 --yes",
	"lease reserve": "5 --until 2090-01-01",
	"lease check":   "",
	"lease export":  "--to new --running --yes",
	"lease import":  "testdata/fleet.json",

	"sequence create": "invoices",
	"sequence next":   "orders --count 20",
	"sequence list":   "",
	"sequence show":   "orders",
	"sequence set":    "orders --next 100 --yes",
	"sequence delete": "orders --yes",
	"sequence export": "orders --to new --yes",
	"sequence import": "testdata/orders.json",
}

// hangAfter makes a store known as hangtest://h?after=N, in which a process that has crashed
// holds node 1, with a sequence orders. Its operations hang until their contexts end, but for
// the first N of a command.
func hangAfter(t *testing.T) {
	stores.Register("hangtest", func(_ context.Context, rawURL string) (stores.Store, error) {
		u, err := url.Parse(rawURL)
		require.NoError(t, err)
		after, err := strconv.ParseInt(u.Query().Get("after"), 10, 64)
		require.NoError(t, err)
		memory := storetest.NewMemory()
		if u.Query().Get("empty") != "true" {
			_, err = lease.Claim(t.Context(), memory, lease.WithPolling(), lease.WithNode(lease.NodeNumber(1)))
			require.NoError(t, err)
		}
		require.NoError(t, sequence.Create(t.Context(), memory, "orders", sequence.Definition{Start: 1}))
		s, done := memory.Client(), new(atomic.Int64)
		s.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			if done.Add(1) > after {
				<-ctx.Done()
			}
			return storetest.None
		}
		return s, nil
	})
}

// Every command ends soon after --timeout, whichever of its operations hangs. If its work is
// not done then, the exit code is 1.
func TestHangs(t *testing.T) {
	root := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard})
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Flags().Lookup("timeout") != nil {
			name := strings.TrimPrefix(c.CommandPath(), "tickflake ")
			if name != "serve" { // it does not end by itself: see below
				assert.Contains(t, hangCommands, name, "a new command with --timeout belongs in hangCommands")
			}
		}
		for _, child := range c.Commands() {
			look(child)
		}
	}
	look(root)

	hangAfter(t)
	const operations = 9 // more than any command but the export of a fleet has
	var commands sync.WaitGroup
	for command, args := range hangCommands {
		for after := range operations {
			commands.Go(func() {
				timeout, until := "100ms", after
				if after == operations-1 {
					timeout, until = "1m", 1<<20 // it does not hang
				}
				line := fmt.Sprintf("%s %s --timeout %s --store hangtest://h?after=%d&empty=%t", command, args, timeout, until, command == "lease import")
				began := time.Now()
				got := tickflake(strings.Fields(line)...)
				took := time.Since(began)
				assert.Less(t, took, 10*time.Second, "%s, after %d operations", command, after)
				switch after {
				case 0:
					assert.Equal(t, 1, got.code, "%s: %s", command, got.err)
					assert.Contains(t, got.err, "gave up after 100ms (--timeout)", command)
				case operations - 1:
					assert.Zero(t, got.code, "%s: %s", command, got.err)
				}
				t.Logf("%s, after %d operations: %v, exit code %d", command, after, took.Round(time.Millisecond), got.code)
			})
		}
	}
	commands.Go(func() {
		got := tickflake("serve", "--resp", "127.0.0.1:0", "--http", "off", "--grpc", "off", "--timeout", "100ms", "--store", "hangtest://h?after=0")
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "gave up after 100ms (--timeout)")
	})
	commands.Wait()
}
