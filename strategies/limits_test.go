package strategies_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/strategies"
)

// What a call waits for under a lease does not grow by what is not known.
func TestWaitLimit(t *testing.T) {
	unknown := strategies.Func(strategies.Wait().Decide)
	for _, c := range []struct {
		strategy strategies.Strategy
		want     time.Duration
	}{
		{strategies.Reject(), 0},
		{strategies.WaitUpTo(5 * ms), 5 * ms},
		{strategies.BorrowUpTo(ms), 0},
		{strategies.Chain(strategies.BorrowUpTo(ms), strategies.WaitUpTo(2*ms), strategies.WaitUpTo(ms)), 2 * ms},
		{strategies.PerCause(strategies.WaitUpTo(ms), strategies.WaitUpTo(3*ms)), 3 * ms},
		{unknown, 0},
		{strategies.Chain(unknown), 0},
		{strategies.Chain(strategies.WaitUpTo(ms), unknown), ms},
		{strategies.PerCause(unknown, strategies.WaitUpTo(ms)), ms},
		{strategies.PerCause(strategies.WaitUpTo(ms), strategies.Chain(unknown)), ms},
		{nil, 0},
	} {
		assert.Equal(t, c.want, strategies.WaitLimit(c.strategy), fmt.Sprint(c.strategy))
	}
}

func TestLimits(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	type limits struct{ wait, borrow time.Duration }
	for _, c := range []struct {
		strategy          strategies.Strategy
		exhausted, behind limits
	}{
		{strategies.Reject(), limits{}, limits{}},
		{strategies.WaitUpTo(5 * ms), limits{wait: 5 * ms}, limits{wait: 5 * ms}},
		{strategies.Wait(), limits{wait: forever}, limits{wait: forever}},
		{strategies.BorrowUpTo(ms), limits{borrow: ms}, limits{borrow: ms}},
		{strategies.Chain(strategies.WaitUpTo(ms), strategies.BorrowUpTo(3*ms), strategies.WaitUpTo(9*ms)), limits{9 * ms, 3 * ms}, limits{9 * ms, 3 * ms}},
		{strategies.LikeLeaf(), limits{wait: forever}, limits{wait: 5 * ms}},
		{strategies.Chain(strategies.PerCause(strategies.BorrowUpTo(ms), strategies.Reject()), strategies.WaitUpTo(2*ms)), limits{2 * ms, ms}, limits{wait: 2 * ms}},
		{strategies.Func(strategies.Reject().Decide), limits{forever, forever}, limits{forever, forever}},
		{strategies.Chain(strategies.Func(strategies.Reject().Decide), strategies.WaitUpTo(ms)), limits{forever, forever}, limits{forever, forever}},
	} {
		wait, borrow := strategies.Limits(c.strategy, strategies.Exhausted)
		assert.Equal(t, c.exhausted, limits{wait, borrow}, "%s, exhausted", fmt.Sprint(c.strategy))
		wait, borrow = strategies.Limits(c.strategy, strategies.Behind)
		assert.Equal(t, c.behind, limits{wait, borrow}, "%s, behind", fmt.Sprint(c.strategy))
	}
}
