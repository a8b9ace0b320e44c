package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

const brokenEnv = "LEASETEST_BROKEN"

// TestServers puts a server through TestServer: a good one, or in a child process
// of TestBrokenServersAreCaught, one that is broken.
func TestServers(t *testing.T) {
	s := newFakeServer(t)
	how := os.Getenv(brokenEnv)
	s.blind, s.forgets = how == "blind", how == "forgets"
	hurry(how)
	leasetest.TestServer(t, leasetest.Server{
		Addr: s.addr,
		Open: func(_ testing.TB, addr, namespace string) lease.Store {
			return &fakeClient{
				addr: addr, namespace: namespace,
				retries: how == "retries", patient: how == "patient", stuck: how == "stuck", hopeful: how == "hopeful",
			}
		},
		Kill:  s.kill,
		Start: s.start,
	})
}

func TestBrokenServersAreCaught(t *testing.T) {
	for how, by := range map[string]string{
		"blind":   "late_write",
		"forgets": "killed",
		"retries": "cut_after_the_write,_connected_again",
		"patient": "slow_answer",
		"stuck":   "cut_anywhere",
		"hopeful": "cut_before_the_write",
	} {
		t.Run(how, func(t *testing.T) { caught(t, "TestServers", how, by) })
	}
}

// caught runs one test in a child process, with something broken, and checks that
// a subtest fails.
func caught(t *testing.T, test, how, by string) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.timeout=2m", "-test.run=^"+test+"$/^"+by+"$")
	cmd.Env = append(os.Environ(), brokenEnv+"="+how)
	out, err := cmd.CombinedOutput()
	assert.ErrorAs(t, err, new(*exec.ExitError))
	assert.Contains(t, string(out), "--- FAIL: "+test+"/"+by)
	assert.NotContains(t, string(out), "panic:")
}

// hurry keeps a test that is to fail from waiting for long.
func hurry(how string) {
	if how != "" {
		leasetest.SetPatience(3 * time.Second)
	}
}

// TestStores is the same for TestStore.
func TestStores(t *testing.T) {
	var n namespaces
	how := os.Getenv(brokenEnv)
	hurry(how)
	leasetest.TestStore(t, func(t testing.TB, name string) lease.Store {
		switch how {
		case "one namespace":
			name = "all"
		case "any case":
			name = strings.ToLower(name)
		case "wildcard":
			name = strings.ReplaceAll(name, "_", "x")
		}
		return &broken{LockingMemory: n.open(t, name).(*leasetest.Memory).Locking(), how: how, cache: make(map[int64]lease.Cell)}
	})
}

// broken is a store in which one thing is wrong.
type broken struct {
	leasetest.LockingMemory
	how   string
	mu    sync.Mutex
	cache map[int64]lease.Cell
	last  []byte
}

func (b *broken) List(ctx context.Context) ([]lease.Cell, error) {
	cells, err := b.LockingMemory.List(ctx)
	switch {
	case b.how == "short list" && len(cells) > 1000:
		cells = cells[:1000]
	case b.how == "list twice":
		cells = append(cells, cells...)
	}
	return cells, err
}

func (b *broken) Read(ctx context.Context, node int64) (lease.Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cell, ok := b.cache[node]; ok && b.how == "cache" {
		return cell, nil
	}
	cell, err := b.LockingMemory.Read(ctx, node)
	switch {
	case b.how == "shares" && b.last != nil && cell.Version != 0:
		cell.Value = b.last
	case b.how == "wraps" && err != nil:
		err = errors.New(err.Error())
	case b.how == "bytes" && cell.Version != 0:
		cell.Version = b.version(cell)
	case b.how == "invents" && cell.Version == 0:
		cell, err = b.LockingMemory.Swap(ctx, cell, nil)
	}
	b.cache[node] = cell
	return cell, err
}

// version makes one of the value, which is the same when the value is.
func (b *broken) version(cell lease.Cell) uint64 { return uint64(crc32.ChecksumIEEE(cell.Value)) + 1 }

func (b *broken) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := value
	is := b.Peek(old.Node)
	switch b.how {
	case "trims":
		value = []byte(strings.TrimRight(string(value), " "))
	case "latin":
		value = slices.DeleteFunc(slices.Clone(value), func(c byte) bool { return c >= 0xf0 })
	case "cuts":
		value = value[:min(len(value), 1000)]
	case "blind":
		old.Version = is.Version
	case "overwrites":
		if old.Version == 0 {
			old.Version = is.Version
		}
	case "short versions":
		if uint32(old.Version) == uint32(is.Version) {
			old.Version = is.Version
		}
	case "value too":
		if len(old.Value) > 0 && string(old.Value) != string(is.Value) {
			return lease.Cell{}, lease.ErrConflict
		}
	case "bytes":
		if is.Version == 0 && old.Version == 0 || is.Version != 0 && b.version(is) == old.Version {
			old.Version = is.Version
		} else {
			return lease.Cell{}, lease.ErrConflict
		}
	case "deaf":
		ctx = context.Background()
	case "racy":
		// Read, then write, and another may come between.
		if is.Version != old.Version {
			return lease.Cell{}, lease.ErrConflict
		}
		time.Sleep(50 * time.Microsecond)
		old.Version = b.Peek(old.Node).Version
	}
	cell, err := b.LockingMemory.Swap(ctx, old, value)
	b.last = was
	switch {
	case b.how == "silent" && errors.Is(err, lease.ErrConflict):
		return old, nil
	case b.how == "no conflict" && err != nil:
		return cell, fmt.Errorf("it was changed: %s", err)
	case b.how == "old version" && err == nil:
		cell.Version = max(1, old.Version)
	case b.how == "bytes" && err == nil:
		cell.Version = b.version(cell)
	}
	return cell, err
}

func (b *broken) TryLock(ctx context.Context, node int64) (func(), error) {
	unlock, err := b.LockingMemory.TryLock(ctx, node)
	switch {
	case b.how == "many locks" && errors.Is(err, lease.ErrLocked):
		return func() {}, nil
	case b.how == "own lock" && err == nil:
		// As a lock is of the process, and not of who has asked for it.
		unlock()
		return func() {}, nil
	case b.how == "sticky" && err == nil:
		return func() {}, nil
	}
	return unlock, err
}

func TestBrokenStoresAreCaught(t *testing.T) {
	for how, by := range map[string]string{
		"one namespace":  "namespaces",
		"any case":       "namespaces",
		"wildcard":       "namespaces",
		"short list":     "many_cells",
		"list twice":     "node_numbers",
		"cache":          "read_after_write",
		"shares":         "slices",
		"wraps":          "context_ended_before",
		"bytes":          "versions",
		"invents":        "empty",
		"trims":          "values",
		"latin":          "values",
		"cuts":           "values",
		"blind":          "swap",
		"overwrites":     "create",
		"short versions": "swap",
		"value too":      "old_value_is_not_looked_at",
		"deaf":           "context_ended_before",
		"racy":           "race_to_swap",
		"silent":         "create",
		"no conflict":    "create",
		"old version":    "swap",
		"many locks":     "locks",
		"own lock":       "locks",
		"sticky":         "locks",
	} {
		t.Run(how, func(t *testing.T) { caught(t, "TestStores", how, by) })
	}
}
