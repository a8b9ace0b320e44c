//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if isChild, err := child(); isChild {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// short is a soak for a test.
func short(stores ...string) settings {
	return settings{length: 10 * time.Second, stores: stores, rate: 50, every: 500 * time.Millisecond, step: time.Second, only: regexp.MustCompile(""), progress: time.Second, seed: 1}
}

func run(t *testing.T, s settings) *Report {
	t.Helper()
	var out bytes.Buffer
	r, err := soak(t.Context(), s, &out)
	require.NoError(t, err)
	r.print(&out)
	t.Log(out.String())
	return r
}

// All promises hold on each store, and every client works.
func TestSoak(t *testing.T) {
	t.Parallel()
	r := run(t, short(onDirectory, onEtcd))
	assert.Empty(t, r.Broken)
	require.Len(t, r.Fleets, 2)
	for _, f := range r.Fleets {
		assert.NotEmpty(t, f.Faults, f.Store)
		for _, c := range f.Clients {
			assert.Positive(t, c.IDs, "%s, %s", f.Store, c.Name)
			assert.Positive(t, c.Numbers, "%s, %s", f.Store, c.Name)
		}
	}
	assert.Len(t, r.Sizes, 1+2*serverCount+1)
	for _, g := range r.Sizes {
		assert.Positive(t, g.End.RSS, g.Process)
		assert.Positive(t, g.End.Files, g.Process)
	}
	path := filepath.Join(t.TempDir(), "soak.json")
	require.NoError(t, r.save(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"broken": []`)
}

// A soak of servers with a bug fails, and names the promise that the bug breaks.
func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	for mutant, c := range map[mutant]struct {
		fault  string
		breaks promise
	}{
		sharesNode:   {"", unique},
		forgetsLimit: {"server killed, clock stepped", unique},
		ownNumbers:   {"", unique},
		segments:     {"", inOrder},
		ends:         {"", lives},
		leaks:        {"", bounded},
	} {
		t.Run(string(mutant), func(t *testing.T) {
			t.Parallel()
			s := short(onDirectory)
			s.mutant, s.only, s.until, s.rate = mutant, regexp.MustCompile(c.fault), c.breaks, 100
			s.step = 2 * time.Second
			if c.breaks != bounded { // that is seen at the end
				s.length = time.Minute
			}
			r := run(t, s)
			assert.True(t, slices.ContainsFunc(r.Broken, func(b Broken) bool { return b.Promise == string(c.breaks) }), "%v", r.Broken)
		})
	}
}

// The ledger counts values that came twice, also at different checks, and names both clients.
func TestLedger(t *testing.T) {
	l, err := newLedger(filepath.Join(t.TempDir(), "ids"), 4)
	require.NoError(t, err)
	l.add(1, time.Second, 1, 15, 16, 40, 3)
	check := func(twice int64, says string) {
		t.Helper()
		n, example, err := l.check()
		require.NoError(t, err)
		assert.Equal(t, twice, n)
		assert.Equal(t, says, example)
	}
	check(0, "")
	check(0, "")
	l.add(2, 2*time.Second, 2, 16)
	check(1, "16 came to client 1 at 1s and to client 2 at 2s")
	l.add(3, 3*time.Second, 100, 100, 16)
	check(2, "16 came to client 1 at 1s and to client 3 at 3s")
	l.add(4, 4*time.Second, 101)
	check(0, "")
}

// Growth above the bounds breaks a promise, below them it does not.
func TestGrowth(t *testing.T) {
	start := Size{RSS: 30 << 20, Goroutines: 20, Files: 15}
	for name, c := range map[string]struct {
		end  Size
		want string
	}{
		"none":       {Size{RSS: 90 << 20, Goroutines: 270, Files: 70}, ""},
		"memory":     {Size{RSS: 95 << 20, Goroutines: 20, Files: 15}, "bytes of memory"},
		"goroutines": {Size{RSS: 30 << 20, Goroutines: 277, Files: 15}, "goroutines"},
		"files":      {Size{RSS: 30 << 20, Goroutines: 20, Files: 80}, "files"},
	} {
		t.Run(name, func(t *testing.T) {
			how := Growth{Process: "server", Start: start, End: c.end}.beyond()
			if c.want == "" {
				assert.Empty(t, how)
				return
			}
			require.Len(t, how, 1)
			assert.Contains(t, how[0], c.want)
		})
	}
}

func TestSettings(t *testing.T) {
	good := short(onEtcd)
	assert.NoError(t, good.check(nil))
	assert.ErrorContains(t, good.check([]string{"1h"}), "takes no argument")
	for says, change := range map[string]func(*settings){
		"--for":   func(s *settings) { s.length = 0 },
		"--rate":  func(s *settings) { s.rate = 0 },
		"--store": func(s *settings) { s.stores = []string{"redis"} },
		"--fault": func(s *settings) { s.only = regexp.MustCompile("flood") },
	} {
		bad := good
		change(&bad)
		assert.ErrorContains(t, bad.check(nil), says)
	}
}
