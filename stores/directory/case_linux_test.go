package directory

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/sim/disktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var noCase = flag.Bool("nocase", false, "also prove a directory on a file system that ignores case, for up to a minute")

// Windows, macOS and vfat ignore case.
func TestConformanceWithoutCase(t *testing.T) {
	if !*noCase {
		t.Skip("it takes up to a minute: give -nocase")
	}
	root, skips := disktest.WithoutCase(t)
	require.NoError(t, os.Mkdir(filepath.Join(root, "Same"), 0o700))
	_, err := os.Stat(filepath.Join(root, "sAME"))
	require.NoError(t, err, "the file system heeds case")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		s := below(t, root, namespace)
		if skips {
			s = thrice{s}
		}
		return s
	})
}

// thrice lists three times, and puts together what was found.
type thrice struct{ stores.Store }

func (s thrice) List(ctx context.Context, from, to string, limit int) (all []stores.Cell, err error) {
	for range 3 {
		some, failed := s.Store.List(ctx, from, to, limit)
		if all, err = append(some, all...), failed; failed != nil {
			return some, err
		}
	}
	slices.SortStableFunc(all, func(a, b stores.Cell) int { return strings.Compare(a.Key, b.Key) })
	all = slices.CompactFunc(all, func(a, b stores.Cell) bool { return a.Key == b.Key })
	return all[:min(len(all), max(limit, 0))], nil
}
