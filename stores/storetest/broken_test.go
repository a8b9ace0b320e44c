package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// brokenEnv is what is wrong in a child process of TestBrokenAreCaught; none, the suites run on what is good.
const brokenEnv = "STORETEST_BROKEN"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // if it is not given: what is to fail waits most of its time
	if os.Getenv(brokenEnv) != "" {
		storetest.SetPatience(time.Second)
	}
	os.Exit(m.Run())
}

func TestServers(t *testing.T) {
	t.Parallel()
	how := os.Getenv(brokenEnv)
	s := newFakeServer(t, how)
	open := func(ctx context.Context, url string) (stores.Store, error) {
		_, rest, _ := strings.Cut(url, "://")
		addr, namespace, _ := strings.Cut(rest, "/")
		c := &fakeClient{addr: addr, namespace: namespace, how: cmp.Or(how, "unlucky")}
		if how == "gives up" {
			if _, err := c.Read(ctx, "a"); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
	stores.Register("fake", open)
	stores.Register("fakes", open)
	storetest.TestServer(t, storetest.Server{
		Addr: s.addr,
		Open: func(_ testing.TB, addr, namespace string) stores.Store {
			return &fakeClient{addr: addr, namespace: namespace, how: how}
		},
		Damage: s.damage, Kill: s.kill, Start: s.start,
		URL:     func(addr, namespace string) string { return "fake://" + addr + "/" + namespace },
		TLS:     func(addr, namespace string) string { return "fakes://" + addr + "/" + namespace },
		Suspend: s.suspend, Resume: s.resume,
	})
}

// The Memory is the store that is not broken.
func TestStores(t *testing.T) {
	var n namespaces
	how := os.Getenv(brokenEnv)
	storetest.TestStore(t, func(t testing.TB, name string) stores.Store {
		switch how {
		case "one namespace":
			name = "all"
		case "any case":
			name = strings.ToLower(name)
		case "wildcard":
			name = strings.ReplaceAll(name, "_", "x")
		}
		return &broken{LockingMemory: n.open(t, name).(*storetest.Memory).Locking(), how: how, cache: make(map[string]stores.Cell)}
	})
}

// TestBrokenAreCaught runs each suite in child processes, each with one thing that is wrong, and checks that each subtest
// for it fails.
func TestBrokenAreCaught(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for test, mutants := range map[string]map[string]string{"TestStores": brokenStores, "TestServers": {
		"blind":    "late_write",
		"forgets":  "killed",
		"careless": "damaged",
		"retries":  "cut_anywhere",
		"patient":  "late_write hangs/calls",
		"stuck":    "cut_anywhere",
		"hopeful":  "cut_anywhere hangs/calls",
		"dwells":   "hangs/calls",
		"gives up": "hangs/calls",
		"hasty":    "hangs/calls",
		"left":     "hangs",
		"runs":     "hangs",
	}} {
		for how, all := range mutants {
			for by := range strings.FieldsSeq(all) {
				t.Run(test+"/"+how+"/"+by, func(t *testing.T) {
					if how != "hasty" { // that is caught by how often it dials, so the others wait
						t.Parallel()
					}
					cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.timeout=2m", "-test.run=^"+test+"$/^"+by+"$")
					cmd.Env = append(os.Environ(), brokenEnv+"="+how)
					out, err := cmd.CombinedOutput()
					assert.ErrorAs(t, err, new(*exec.ExitError))
					assert.Contains(t, string(out), "--- FAIL: "+test+"/"+by)
					assert.NotContains(t, string(out), "panic:")
				})
			}
		}
	}
}

// broken is a store in which one thing is wrong.
type broken struct {
	storetest.LockingMemory
	how    string
	mu     sync.Mutex
	closed bool
	cache  map[string]stores.Cell
	last   []byte // that a caller gave to Swap
}

func (b *broken) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	switch b.how {
	case "no limit":
		limit = math.MaxInt
	case "no end":
		to = "\x7f"
	case "to is included":
		to += "\x00"
	case "no begin":
		from = ""
	}
	cells, err := b.LockingMemory.List(ctx, from, to, limit)
	switch {
	case b.how == "short list" && len(cells) > 1000:
		cells = cells[:1000]
	case b.how == "misses":
		// It reads in parts, and a cell that is written moves from one to another.
		time.Sleep(time.Millisecond)
		cells = slices.DeleteFunc(cells, func(c stores.Cell) bool { return b.Peek(c.Key).Version != c.Version })
	case b.how == "list twice":
		cells = append(cells, cells...)
	case b.how == "file order":
		slices.SortFunc(cells, func(a, b stores.Cell) int {
			return strings.Compare(strings.ReplaceAll(a.Key, "/", "+"), strings.ReplaceAll(b.Key, "/", "+"))
		})
	}
	return cells, err
}

func (b *broken) Read(ctx context.Context, key string) (stores.Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cell, ok := b.cache[key]; ok && b.how == "cache" {
		return cell, nil
	}
	if b.how == "any key" {
		key = strings.ToLower(strings.Trim(key, "/"))
	}
	cell, err := b.LockingMemory.Read(ctx, key)
	switch {
	case b.how == "shares" && b.last != nil && cell.Version != 0:
		cell.Value = b.last
	case b.how == "wraps" && err != nil:
		err = errors.New(err.Error())
	case b.how == "bytes" && cell.Version != 0:
		cell.Version = b.version(cell)
	case b.how == "invents" && err == nil && cell.Version == 0:
		cell.Version, err = b.LockingMemory.Swap(ctx, key, 0, nil)
	}
	b.cache[key] = cell
	return cell, err
}

// version makes one of the value, which is the same when the value is.
func (b *broken) version(cell stores.Cell) uint64 { return uint64(crc32.ChecksumIEEE(cell.Value)) + 1 }

func (b *broken) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, old := value, version
	is := b.Peek(key)
	switch b.how {
	case "trims":
		value = []byte(strings.TrimRight(string(value), " "))
	case "latin":
		value = slices.DeleteFunc(slices.Clone(value), func(c byte) bool { return c >= 0xf0 })
	case "cuts":
		value = value[:min(len(value), 1000)]
	case "takes all":
		value = []byte(strings.ToValidUTF8(strings.ReplaceAll(string(value), "\x00", ""), ""))
	case "blind":
		version = is.Version
	case "overwrites":
		if version == 0 {
			version = is.Version
		}
	case "short versions":
		if uint32(version) == uint32(is.Version) {
			version = is.Version
		}
	case "bytes":
		if is.Version == 0 && version == 0 || is.Version != 0 && b.version(is) == version {
			version = is.Version
		} else {
			return 0, stores.ErrConflict
		}
	case "deaf":
		ctx = context.Background()
	case "racy":
		// It reads, then writes, and another write may come between.
		if is.Version != version {
			return 0, stores.ErrConflict
		}
		b.mu.Unlock()
		time.Sleep(50 * time.Microsecond)
		b.mu.Lock()
		version = b.Peek(key).Version
	}
	next, err := b.LockingMemory.Swap(ctx, key, version, value)
	b.last = was
	switch {
	case b.how == "silent" && errors.Is(err, stores.ErrConflict):
		return old + 1, nil
	case b.how == "no conflict" && err != nil:
		return 0, fmt.Errorf("it was changed: %s", err)
	case b.how == "old version" && err == nil:
		next = max(1, old)
	case b.how == "bytes" && err == nil:
		next = b.version(b.Peek(key))
	}
	return next, err
}

func (b *broken) Traits() stores.Traits { return stores.Traits{TryLock: b.tryLock} }

func (b *broken) tryLock(ctx context.Context, key string) (func(), error) {
	unlock, err := b.LockingMemory.Traits().TryLock(ctx, key)
	switch {
	case b.how == "many locks" && errors.Is(err, stores.ErrLocked):
		return func() {}, nil
	case b.how == "own lock" && err == nil:
		// As a lock of the process, which excludes no other of its goroutines.
		unlock()
		return func() {}, nil
	case b.how == "sticky" && err == nil:
		return func() {}, nil
	}
	return unlock, err
}

func (b *broken) Close() error {
	if b.how == "closes once" {
		if b.closed {
			return errors.New("closed already")
		}
		b.closed = true
	}
	return b.LockingMemory.Close()
}

var brokenStores = map[string]string{
	"one namespace":  "namespaces",
	"any case":       "namespaces",
	"wildcard":       "namespaces",
	"short list":     "many_cells",
	"misses":         "many_cells",
	"list twice":     "ranges",
	"file order":     "ranges",
	"no limit":       "ranges",
	"no end":         "ranges",
	"no begin":       "ranges",
	"to is included": "ranges",
	"any key":        "refused",
	"takes all":      "refused",
	"closes once":    "closed",
	"cache":          "versions",
	"shares":         "slices",
	"wraps":          "context_ends",
	"bytes":          "versions",
	"invents":        "namespaces",
	"trims":          "values",
	"latin":          "values",
	"cuts":           "values",
	"blind":          "swap",
	"overwrites":     "swap",
	"short versions": "swap",
	"deaf":           "context_ends",
	"racy":           "races",
	"silent":         "swap",
	"no conflict":    "swap",
	"old version":    "swap",
	"many locks":     "locks",
	"own lock":       "locks",
	"sticky":         "locks",
}
