package lease_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// newerStore is the store as a newer version of the library uses it: its cells have another
// beginning, and it reads those of this version as well.
type newerStore struct {
	*storetest.Memory
	begin string
}

const ours = `{"format":1,`

func (s newerStore) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return s.Memory.Swap(ctx, key, version, bytes.Replace(value, []byte(ours), []byte(s.begin), 1))
}

func (s newerStore) Read(ctx context.Context, key string) (stores.Cell, error) {
	cell, err := s.Memory.Read(ctx, key)
	cell.Value = bytes.Replace(cell.Value, []byte(s.begin), []byte(ours), 1)
	return cell, err
}

func (s newerStore) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := s.Memory.List(ctx, from, to, limit)
	for i := range cells {
		cells[i].Value = bytes.Replace(cells[i].Value, []byte(s.begin), []byte(ours), 1)
	}
	return cells, err
}

var newerVersions = map[string]struct{ begin, says string }{
	"format": {`{"format":2,`, "its format is 2, and this process reads format 1"},
	"field":  {`{"format":1,"more":{"a":1},`, `its field "more" is unknown to this process`},
}

// TestTwoVersions runs processes of two versions in one namespace. The older one says where and
// which version, leaves the cells of the newer one alone, and goes on with other numbers.
func TestTwoVersions(t *testing.T) {
	for name, newer := range newerVersions {
		t.Run(name, func(t *testing.T) {
			clock, memory := clocktest.NewVirtual(noon), storetest.NewMemory()
			store := newerStore{memory.Client(), newer.begin}
			var log bytes.Buffer
			old := must(lease.Claim(t.Context(), memory, quiet(clock, small(2), logTo(&log), lease.WithNode(lease.NodeNumber(0)))...))
			young := must(lease.Claim(t.Context(), store, quiet(clock, small(2), lease.WithNode(lease.NodeNumber(1)))...))
			theirs := memory.Peek(cell.NodeKey(1))
			require.Contains(t, string(theirs.Value), newer.begin)
			refused := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, stores.ErrDamaged)
				assert.ErrorContains(t, err, "node number 1")
				assert.ErrorContains(t, err, newer.says)
				assert.ErrorContains(t, err, "upgrade this process")
				assert.NotContains(t, err.Error(), "delete")
			}

			// No number of the newer version is claimed, released, reserved or exported.
			_, err := lease.Claim(t.Context(), memory, quiet(clock, small(2), lease.WithNode(lease.NodeNumber(1)))...)
			refused(err)
			refused(lease.ForceRelease(t.Context(), memory, 1))
			refused(lease.Reserve(t.Context(), memory, 1, 1, noon.AddDate(1, 0, 0), quiet(clock, small(2))...))
			refused(must(lease.Inspect(t.Context(), memory, 1)).Err)
			for _, options := range [][]lease.ExportOption{nil, {lease.EvenIfRunning()}} {
				_, err = lease.Export(t.Context(), memory.Client(), "new", options...)
				refused(err)
			}
			others := map[int64]bool{}
			for range 2 {
				others[must(lease.Claim(t.Context(), memory, quiet(clock, small(2), logTo(&log))...)).Node()] = true
			}
			assert.Equal(t, map[int64]bool{2: true, 3: true}, others)
			assert.Contains(t, log.String(), "a newer version of tickflake wrote it")
			_, err = lease.Claim(t.Context(), memory, quiet(clock, small(2))...)
			var full *lease.NoFreeNodeError
			require.ErrorAs(t, err, &full)
			assert.Equal(t, theirs, memory.Peek(cell.NodeKey(1)))

			// Both are extended. The newer one takes the number of the older one over: that one
			// uses its grant up.
			clock.Advance(lease.DefaultWindow / 2)
			old.Poll(t.Context())
			young.Poll(t.Context())
			require.NoError(t, old.Err())
			require.NoError(t, young.Err())
			_, limit := old.Granted()
			taken := must(lease.Claim(t.Context(), store, quiet(clock, small(2), lease.WithNode(lease.NodeNumber(0)))...))
			from, _ := taken.Granted()
			assert.False(t, from.Before(limit))
			theirs = memory.Peek(cell.NodeKey(0))
			clock.Advance(lease.DefaultWindow / 2)
			old.Poll(t.Context())
			require.ErrorIs(t, old.Err(), stores.ErrDamaged)
			require.ErrorIs(t, old.Close(), lease.ErrNotReleased)
			assert.Equal(t, theirs, memory.Peek(cell.NodeKey(0)))
		})
	}
}

// TestNewerLayout has a newer version write the cell of the layout. No older process claims a
// number; one that holds a number goes on.
func TestNewerLayout(t *testing.T) {
	for name, newer := range newerVersions {
		t.Run(name, func(t *testing.T) {
			clock, memory := clocktest.NewVirtual(noon), storetest.NewMemory()
			old := must(lease.Claim(t.Context(), memory, quiet(clock)...))
			c := memory.Peek(cell.LayoutKey)
			store := newerStore{memory.Client(), newer.begin}
			_, err := store.Swap(t.Context(), c.Key, c.Version, c.Value)
			require.NoError(t, err)
			c = memory.Peek(cell.LayoutKey)
			for _, err := range []error{
				second(lease.Claim(t.Context(), memory, quiet(clock)...)),
				lease.Reserve(t.Context(), memory, 1, 1, noon.AddDate(1, 0, 0), quiet(clock)...),
				second(lease.Export(t.Context(), memory, "new", lease.EvenIfRunning())),
				lease.Import(t.Context(), memory, lease.Sealed(lease.Floors{Format: 1, Export: "e", Layout: old.Layout().String()})),
			} {
				require.ErrorIs(t, err, stores.ErrDamaged)
				assert.ErrorContains(t, err, "cell of the layout")
				assert.ErrorContains(t, err, newer.says)
				assert.ErrorContains(t, err, "upgrade this process")
			}
			clock.Advance(time.Minute)
			old.Poll(t.Context())
			assert.NoError(t, old.Err())
			assert.Equal(t, c, memory.Peek(cell.LayoutKey))
		})
	}
}

func second[T any](_ T, err error) error { return err }

// first is the time that a Poll returns.
func first(next time.Duration, _ error) time.Duration { return next }
