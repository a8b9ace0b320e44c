package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/stores"
)

// TestFleetCatches makes sure that the fleets come upon an ID that is issued twice: that is what all of it is for. The
// number is that of the catalogue of faults; M1 to M4 and M6 to M8 are of the generator, M10 of the files in a directory,
// and the explorer has all mutants of the protocol, this one too.
func TestFleetCatches(t *testing.T) {
	t.Run("M9 an unknown outcome is taken for a failure", func(t *testing.T) {
		often := func(f *fleet) { // the outcome of many writes is unknown, and others want the numbers
			f.kinds, f.fates, f.pStore = []string{"kill", "shutdown", "zombie"}, []string{"lost", "late", "unanswered"}, 300
			f.skewed, f.pPause, f.latency, f.count = true, 10, f.period/64, 4
			f.layout.NodeBits, f.has[0].To = 1, 2
		}
		for seed := range uint64(2000) {
			for _, failure := range play(t, seed, setup{retries: true, alone: often}).failures {
				if t.Logf("seed %d: %s", seed, failure); strings.HasPrefix(failure, "duplicate") {
					return
				}
			}
		}
		t.Fatal("no ID came twice")
	})
}

// retrying is the mutant of a client that takes a write of unknown outcome for one that has
// failed, and makes it once more with the version that it finds.
type retrying struct{ *way }

func (s retrying) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.way.Swap(ctx, key, version, value)
	if err == nil || errors.Is(err, stores.ErrConflict) {
		return now, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.p.timeout)
	defer cancel()
	found, failed := s.Read(ctx, key)
	if failed != nil {
		return now, err
	}
	return s.way.Swap(ctx, key, found.Version, value)
}
