package strategies_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/strategies"
)

const ms = time.Millisecond

func TestDecide(t *testing.T) {
	var (
		borrow = strategies.Decision{Action: strategies.ActionBorrow}
		wait   = func(d time.Duration) strategies.Decision {
			return strategies.Decision{Action: strategies.ActionWait, Wait: d}
		}
		reject = func(limit time.Duration) strategies.Decision {
			return strategies.Decision{Action: strategies.ActionReject, Limit: limit}
		}
		exhausted = func(lead time.Duration) strategies.Situation {
			return strategies.Situation{Cause: strategies.Exhausted, Lead: lead}
		}
		behind = func(lead, waited time.Duration) strategies.Situation {
			return strategies.Situation{Cause: strategies.Behind, Lead: lead, Waited: waited}
		}
		waited = func(s strategies.Situation, d time.Duration) strategies.Situation {
			s.Waited = d
			return s
		}
		chain    = strategies.Chain(strategies.BorrowUpTo(10*ms), strategies.WaitUpTo(50*ms))
		perCause = strategies.PerCause(strategies.WaitUpTo(5*ms), strategies.WaitUpTo(9*ms))
	)
	for _, tt := range []struct {
		name      string
		strategy  strategies.Strategy
		situation strategies.Situation
		want      strategies.Decision
	}{
		{"reject", strategies.Reject(), behind(1, 0), reject(0)},
		{"reject exhausted", strategies.Reject(), exhausted(1), reject(0)},

		{"wait", strategies.WaitUpTo(5 * ms), behind(3*ms, 0), wait(3 * ms)},
		{"wait at the limit", strategies.WaitUpTo(5 * ms), behind(5*ms, 0), wait(5 * ms)},
		{"wait beyond it", strategies.WaitUpTo(5 * ms), behind(5*ms+1, 0), reject(5 * ms)},
		{"wait again", strategies.WaitUpTo(5 * ms), behind(2*ms, 3*ms), wait(2 * ms)},
		{"wait too often", strategies.WaitUpTo(5 * ms), behind(2*ms, 3*ms+1), reject(5 * ms)},
		{"wait with a lead beyond reckoning", strategies.WaitUpTo(5 * ms), behind(math.MaxInt64, ms), reject(5 * ms)},
		{"wait 0", strategies.WaitUpTo(0), exhausted(1), reject(0)},
		{"wait for ever", strategies.Wait(), behind(math.MaxInt64, 0), wait(math.MaxInt64)},
		{"wait for ever, again", strategies.Wait(), behind(time.Hour, time.Hour), wait(time.Hour)},

		{"borrow", strategies.BorrowUpTo(10 * ms), behind(10*ms, 0), borrow},
		{"borrow beyond", strategies.BorrowUpTo(10 * ms), behind(10*ms+1, 0), reject(10 * ms)},
		{"borrow after a wait", strategies.BorrowUpTo(10 * ms), behind(10*ms, time.Hour), borrow},

		{"chain borrows", chain, exhausted(10 * ms), borrow},
		{"chain waits until it can borrow", chain, exhausted(11 * ms), wait(1 * ms)},
		{"chain at the limit", chain, behind(50*ms, 0), wait(40 * ms)},
		{"chain rejects with the largest limit", chain, behind(51*ms, 0), reject(50 * ms)},
		{"which may be the first", strategies.Chain(strategies.WaitUpTo(50*ms), strategies.BorrowUpTo(10*ms)), behind(51*ms, 0), reject(50 * ms)},
		{"or in the middle", strategies.Chain(strategies.Reject(), strategies.BorrowUpTo(20*ms), strategies.WaitUpTo(5*ms)), exhausted(21 * ms), reject(20 * ms)},
		{"or that of a chain in it", strategies.Chain(chain, strategies.Reject()), behind(51*ms, 0), reject(50 * ms)},
		{"chain counts what was waited", chain, behind(20*ms, 40*ms), reject(50 * ms)},
		{"wait first, then borrow", strategies.Chain(strategies.WaitUpTo(5*ms), strategies.BorrowUpTo(time.Second)), behind(5*ms, 0), wait(5 * ms)},
		{"borrow because a wait was too long", strategies.Chain(strategies.WaitUpTo(5*ms), strategies.BorrowUpTo(time.Second)), behind(6*ms, 0), borrow},
		{"chain of chains", strategies.Chain(strategies.Reject(), chain), exhausted(12 * ms), wait(2 * ms)},
		{"chain fills in a wait", strategies.Chain(strategies.BorrowUpTo(ms), waiter{}), behind(3*ms, 0), wait(2 * ms)},

		{"per cause, exhausted", strategies.PerCause(strategies.WaitUpTo(ms), strategies.Reject()), exhausted(ms), wait(ms)},
		{"per cause, behind", strategies.PerCause(strategies.WaitUpTo(ms), strategies.Reject()), behind(ms, 0), reject(0)},
		{"per cause, exhausted again", perCause, waited(exhausted(2*ms), 3*ms), wait(2 * ms)},
		{"per cause, exhausted too often", perCause, waited(exhausted(2*ms), 3*ms+1), reject(5 * ms)},
		{"per cause, behind again", perCause, behind(2*ms, 7*ms), wait(2 * ms)},
		{"per cause, behind too often", perCause, behind(2*ms, 7*ms+1), reject(9 * ms)},

		{"default waits a second", strategies.Default(), behind(time.Second, 0), wait(time.Second)},
		{"and no longer", strategies.Default(), behind(time.Second+1, 0), reject(time.Second)},
		{"Twitter exhausted", strategies.LikeTwitter(), exhausted(ms), wait(ms)},
		{"Twitter behind", strategies.LikeTwitter(), behind(1, 0), reject(0)},
		{"Leaf exhausted", strategies.LikeLeaf(), exhausted(ms), wait(ms)},
		{"Leaf behind", strategies.LikeLeaf(), behind(5*ms, 0), wait(5 * ms)},
		{"Leaf far behind", strategies.LikeLeaf(), behind(5*ms+1, 0), reject(5 * ms)},
		{"last timestamp plus one", strategies.LastTimestampPlusOne(), behind(24*time.Hour, 0), borrow},
		{"within its bound", strategies.LastTimestampPlusOne(), behind(24*time.Hour+1, 0), reject(24 * time.Hour)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, strategies.Validate(tt.strategy))
			assert.Equal(t, tt.want, tt.strategy.Decide(tt.situation))
		})
	}
}

// waiter is a strategy from outside, which waits for the lead.
type waiter struct{}

func (waiter) Decide(strategies.Situation) strategies.Decision {
	return strategies.Decision{Action: strategies.ActionWait}
}

// What a generator knows of a strategy. Always must never promise a borrow that Decide would not
// make, and a strategy from outside adds nothing to the waits.
func TestLimits(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	type limits = seam.Limits
	bounds := func(always, borrow, wait time.Duration) limits {
		return limits{Always: always, Borrow: borrow, Wait: wait}
	}
	borrow, longer, wait := strategies.BorrowUpTo(ms), strategies.BorrowUpTo(10*ms), strategies.WaitUpTo(5*ms)
	for _, tt := range []struct {
		strategy          strategies.Strategy
		exhausted, behind limits
	}{
		{strategies.Reject(), limits{}, limits{}},
		{wait, limits{Wait: 5 * ms}, limits{Wait: 5 * ms}},
		{strategies.Wait(), limits{Wait: forever}, limits{Wait: forever}},
		{borrow, limits{Always: ms, Borrow: ms}, limits{Always: ms, Borrow: ms}},
		{strategies.Chain(borrow, wait), bounds(ms, ms, 5*ms), bounds(ms, ms, 5*ms)},
		{strategies.Chain(wait, borrow), bounds(0, ms, 5*ms), bounds(0, ms, 5*ms)},
		{strategies.Chain(borrow, wait, longer), bounds(ms, 10*ms, 5*ms), bounds(ms, 10*ms, 5*ms)},
		{strategies.Chain(strategies.Reject(), borrow, longer), bounds(10*ms, 10*ms, 0), bounds(10*ms, 10*ms, 0)},
		{strategies.Chain(strategies.Chain(borrow, wait), longer), bounds(ms, 10*ms, 5*ms), bounds(ms, 10*ms, 5*ms)},
		{strategies.PerCause(wait, longer), bounds(0, 0, 5*ms), bounds(10*ms, 10*ms, 0)},
		{strategies.Chain(strategies.PerCause(borrow, wait), longer), bounds(10*ms, 10*ms, 0), bounds(0, 10*ms, 5*ms)},
		{waiter{}, limits{Foreign: true}, limits{Foreign: true}},
		{strategies.Chain(borrow, waiter{}, longer), limits{Always: ms, Borrow: 10 * ms, Foreign: true}, limits{Always: ms, Borrow: 10 * ms, Foreign: true}},
		{strategies.PerCause(strategies.Chain(waiter{}), wait), limits{Foreign: true}, limits{Wait: 5 * ms}},
	} {
		exhausted, behind := seam.LimitsOf(tt.strategy)
		assert.Equal(t, tt.exhausted, exhausted, "%v", tt.strategy)
		assert.Equal(t, tt.behind, behind, "%v", tt.strategy)
		for cause, limit := range map[strategies.Cause]time.Duration{strategies.Exhausted: exhausted.Always, strategies.Behind: behind.Always} {
			for lead := limit; lead > 0; lead /= 2 {
				d := tt.strategy.Decide(strategies.Situation{Cause: cause, Lead: lead, Waited: time.Hour})
				assert.Equal(t, strategies.ActionBorrow, d.Action, "%v at %s", tt.strategy, lead)
			}
		}
	}
}

func TestSequenceStart(t *testing.T) {
	for _, tt := range []struct {
		start strategies.SequenceStart
		text  string
		below uint64 // 0: refused for a sequence of 256 IDs
	}{
		{strategies.SequenceStart{}, "zero", 1},
		{strategies.StartZero(), "zero", 1},
		{strategies.StartRandom(1), "random:1", 1},
		{strategies.LeafStart(), "random:100", 100},
		{strategies.StartRandom(256), "random:256", 256},
		{strategies.StartRandom(257), "random:257", 0},
		{strategies.StartRandom(0), "random:0", 0},
		{strategies.StartRandom(-5), "random:-5", 0},
	} {
		assert.Equal(t, tt.text, tt.start.String())
		below, err := seam.StartBound(tt.start, 256)
		if tt.below > 0 {
			require.NoError(t, err)
			assert.Equal(t, tt.below, below, tt.text)
			continue
		}
		require.ErrorIs(t, err, strategies.ErrInvalid, tt.text)
		assert.ErrorContains(t, err, strings.TrimPrefix(tt.text, "random:"))
	}
}

func TestValidate(t *testing.T) {
	negative := strategies.WaitUpTo(-ms)
	for name, tt := range map[string]struct {
		strategy strategies.Strategy
		says     string
	}{
		"nil":             {nil, "nil"},
		"nil function":    {strategies.Func(nil), "nil"},
		"nil pointer":     {(*waiter)(nil), "nil"},
		"nil func member": {strategies.PerCause(strategies.Reject(), strategies.Func(nil)), "behind"},
		"negative wait":   {negative, "the limit -1ms is negative"},
		"negative borrow": {strategies.BorrowUpTo(-1), "the limit -1ns is negative"},
		"empty chain":     {strategies.Chain(), "no members"},
		"nil in chain":    {strategies.Chain(strategies.Reject(), nil), "member 2 of 2"},
		"bad in chain":    {strategies.Chain(negative), "member 1 of 1"},
		"bad in nested":   {strategies.Chain(strategies.Chain(negative)), "-1ms"},
		"nil exhausted":   {strategies.PerCause(nil, strategies.Reject()), "exhausted"},
		"nil behind":      {strategies.PerCause(strategies.Reject(), nil), "behind"},
	} {
		t.Run(name, func(t *testing.T) {
			err := strategies.Validate(tt.strategy)
			require.ErrorContains(t, err, tt.says)
			assert.ErrorIs(t, err, strategies.ErrInvalid)
		})
	}
	assert.NoError(t, strategies.Validate(waiter{}))
}

func TestStrings(t *testing.T) {
	assert.Equal(t, "exhausted", strategies.Exhausted.String())
	assert.Equal(t, "behind", strategies.Behind.String())
	assert.Equal(t, "Cause(7)", strategies.Cause(7).String())
	assert.Equal(t, "reject", strategies.ActionReject.String())
	assert.Equal(t, "wait", strategies.ActionWait.String())
	assert.Equal(t, "borrow", strategies.ActionBorrow.String())
	assert.Equal(t, "Action(7)", strategies.Action(7).String())
}
