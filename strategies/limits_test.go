package strategies_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/strategies"
)

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
		{strategies.Leaf(), limits{wait: forever}, limits{wait: 5 * ms}},
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
