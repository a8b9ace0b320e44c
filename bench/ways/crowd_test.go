package ways

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// asked is a way that answers each call after a millisecond, and so many at a time.
func asked(name string, atOnce int) way {
	var last atomic.Int64
	turns := make(chan struct{}, atOnce)
	w := fake(name, func(int) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) {
			turns <- struct{}{}
			time.Sleep(time.Millisecond) // virtual
			<-turns
			return last.Add(1), nil
		}
	})
	w.crowd = true
	return w
}

// A server that answers one call after the other gives a crowd as much as one caller. One
// that answers all at once gives each caller as much.
func TestCrowd(t *testing.T) {
	for name, test := range map[string]struct {
		atOnce int
		gain   float64
	}{"one after the other": {1, 1}, "all at once": {callers, float64(callers)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				section := measureOn(t.Context(), quick(t, time.Second), time.Now(), pretend(), []way{asked(name, test.atOnce)})
				section.Tables[0].Base = "" // tickflake is not among them
				check(t, section)
				table := section.Table("crowd")
				require.NotEmpty(t, table.Cell(name, "rate").Samples)
				assert.InEpsilon(t, 1000*test.gain, table.Cell(name, "rate").Median(), 0.1)
				assert.InEpsilon(t, test.gain, table.Cell(name, "gain").Median(), 0.1)
				assert.Equal(t, results.Good, section.Table("ways").Cell(name, "twice").Mark, "the IDs of the crowd are looked at")
			})
		})
	}
}

func TestRepeatedIDsOfACrowdAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		bad := asked("bad", callers)
		bad.open = fake("", func(int) func(context.Context) (int64, error) {
			return func(context.Context) (int64, error) {
				time.Sleep(time.Millisecond) // virtual
				return calls.Add(1) / 2, nil
			}
		}).open
		s := &subject{way: bad}
		s.open(t.Context(), pretend())
		s.measureCrowd(t.Context(), 10*time.Millisecond)
		require.NoError(t, s.err)
		assert.Greater(t, repeats(s.ids), 4*callers)
	})
}

// The targets compare a crowd of ours to one caller of the server's own, round by round.
func TestCrowdTargets(t *testing.T) {
	of := func(name string, perID, rush float64) *subject {
		s := &subject{way: way{name: name}, perID: map[int][]float64{}}
		for range results.Enough {
			s.perID[1], s.rush = append(s.perID[1], perID), append(s.rush, rush)
		}
		return s
	}
	targets := crowdTargets([]*subject{
		of(postgresSequence, 50, 0), of(sequenceName("PostgreSQL", ordered), 0, 400_000),
		of(sequentialNodes, 1000, 0), of(sequenceName("ZooKeeper", ordered), 0, 200_000),
	})
	require.Len(t, targets, 2)
	assert.InEpsilon(t, 20, targets[0].Got.Median(), 1e-9)
	assert.Equal(t, results.Met, targets[0].State())
	assert.InEpsilon(t, 200, targets[1].Got.Median(), 1e-9)
	assert.Equal(t, results.Missed, targets[1].State())
	for _, open := range crowdTargets(nil) {
		assert.Equal(t, results.Open, open.State())
	}
	check(t, results.Section{Targets: targets})
}
