package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// inPlace is M10, a store that writes the file of a node number in place, and treats a
// file that it cannot read as a missing one. If its process is killed in a write, it
// stops after so many bytes, like a disk. Other cells are in memory.
type inPlace struct {
	stores.Store
	path   string
	killed int // after so many bytes of the next write; none is -1
}

var errKilled = errors.New("the process was killed in the middle of a write")

func (s *inPlace) Read(ctx context.Context, key string) (stores.Cell, error) {
	if key != nodeKey(9) {
		return s.Store.Read(ctx, key)
	}
	data, _ := os.ReadFile(s.path)
	version, value, _ := bytes.Cut(data, []byte("\n"))
	n, err := strconv.ParseUint(string(version), 10, 64)
	if err != nil {
		return stores.Cell{Key: key}, nil // there is none yet
	}
	return stores.Cell{Key: key, Version: n, Value: value}, nil
}

func (s *inPlace) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if key != nodeKey(9) {
		return s.Store.Swap(ctx, key, version, value)
	}
	is, _ := s.Read(ctx, key)
	if is.Version != version {
		return 0, stores.ErrConflict
	}
	data := fmt.Appendf(nil, "%d\n%s", version+1, value)
	err := error(nil)
	if s.killed >= 0 && s.killed < len(data) {
		data, err = data[:s.killed], errKilled
	}
	if err := os.WriteFile(s.path, data, 0o600); err != nil {
		return 0, err
	}
	return version + 1, err
}

// crashes counts the outcomes of processes that were killed in the middle of a write,
// and of those that started after them.
type crashes struct {
	lower   int // began below what had been granted
	twice   int // issued an ID that had been issued
	refused int // did not start
}

// crashAtEachByte kills a process when its extension has written so many bytes, for
// every number of them, and starts another, whose clock stands where the first one's
// began. dies makes the write of an extension stop there, and leaves the state of a
// dead process.
func crashAtEachByte(t *testing.T, each int, open func(dir string) stores.Store, dies func(u *user, dir string, bytes int)) (c crashes) {
	for bytes := 0; bytes < 1000; bytes += each {
		dir := filepath.Join(t.TempDir(), "state")
		first, err := beginOn(open(dir))
		require.NoError(t, err)
		issued := map[snowflake.ID]bool{}
		first.issueInto(t, issued, 20)
		_, was := first.keeper.Granted()
		first.clock.Advance(grant / 2)
		dies(first, dir, bytes)
		_, limit := first.keeper.Granted()
		next, err := beginOn(open(dir))
		if err != nil {
			c.refused++
		} else {
			if floor, _ := next.keeper.Granted(); floor.Before(limit) {
				c.lower++
			}
			c.twice += next.issueInto(t, issued, 20)
			require.NoError(t, next.gen.Close())
		}
		if limit.After(was) { // it was written as a whole
			require.Greater(t, bytes, 200)
			return c
		}
	}
	require.Fail(t, "no extension was ever written as a whole")
	return c
}

// M10 has lost its floor after a crash between the emptying of its file and the writing.
func TestF20_TornState_M10IsCaught(t *testing.T) {
	var store *inPlace
	c := crashAtEachByte(t, 1, func(dir string) stores.Store {
		store = &inPlace{Store: storetest.NewMemory(), path: dir, killed: -1}
		return store
	}, func(u *user, _ string, bytes int) {
		store.killed = bytes
		u.keeper.Poll(t.Context())
	})
	t.Logf("M10: caught by F20 as %d floors that were lower, %d IDs issued twice; %d processes did not start", c.lower, c.twice, c.refused)
	assert.Positive(t, c.lower)
	assert.Positive(t, c.twice)
}
