package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// claim is a strategy and its promise.
type claim struct {
	name     string
	strategy strategies.Strategy
	generatortest.Claim
}

// always is the same promise for both causes.
func always(wait, borrow time.Duration) generatortest.Claim {
	b := generatortest.Bound{Wait: wait, Borrow: borrow}
	return generatortest.Claim{Exhausted: b, Behind: b}
}

// claims are those of the table in docs/strategy.md, and of compositions that users make. Their
// promises are written by hand, so that a strategy that decides otherwise fails.
var claims = []claim{
	{"reject", strategies.Reject(), always(0, 0)},
	{"wait", strategies.WaitUpTo(5 * time.Millisecond), always(5*time.Millisecond, 0)},
	{"wait-forever", strategies.Wait(), always(generatortest.Forever, 0)},
	{"borrow", strategies.BorrowUpTo(time.Second), always(0, time.Second)},
	{"borrow-then-wait", strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second)), always(5*time.Second, time.Second)},
	{"default", strategies.Default(), always(time.Second, 0)},
	{"twitter", strategies.LikeTwitter(), generatortest.Claim{Exhausted: generatortest.Bound{Wait: generatortest.Forever}}},
	{"leaf", strategies.LikeLeaf(), generatortest.Claim{
		Exhausted: generatortest.Bound{Wait: generatortest.Forever},
		Behind:    generatortest.Bound{Wait: 5 * time.Millisecond},
	}},
	{"last-timestamp-plus-one", strategies.LastTimestampPlusOne(), always(0, 24*time.Hour)},
	{"wait-then-borrow", strategies.Chain(strategies.WaitUpTo(2*time.Millisecond), strategies.BorrowUpTo(2*time.Second)), always(2*time.Millisecond, 2*time.Second)},
	{"wait-when-exhausted-borrow-when-behind", strategies.PerCause(strategies.WaitUpTo(time.Second), strategies.BorrowUpTo(time.Minute)), generatortest.Claim{
		Exhausted: generatortest.Bound{Wait: time.Second},
		Behind:    generatortest.Bound{Borrow: time.Minute},
	}},
	{"of-ones-own", strategies.Func(borrowEvenMilliseconds), always(3*time.Millisecond, 10*time.Millisecond)},
}

// borrowEvenMilliseconds is a strategy made outside the strategies package: it waits a
// little where the lead is odd.
func borrowEvenMilliseconds(s strategies.Situation) strategies.Decision {
	switch {
	case s.Lead > 10*time.Millisecond:
		return strategies.Decision{Action: strategies.ActionReject, Limit: 10 * time.Millisecond}
	case s.Lead/time.Millisecond%2 == 1 && s.Lead+s.Waited <= 3*time.Millisecond:
		return strategies.Decision{Action: strategies.ActionWait, Wait: s.Lead / 2}
	}
	return strategies.Decision{Action: strategies.ActionBorrow}
}

// subject is the generator with the claim's strategy.
func (c claim) subject(kind generatortest.ClockKind, opts ...generator.Option) generatortest.Subject[snowflake.ID] {
	s := generatortest.Tickflake(c.strategy, kind, opts...)
	s.Name = c.name + " on " + string(kind)
	s.Claim = c.Claim
	return s
}

// leased is the same under a lease, whose cells are in memory.
func (c claim) leased(kind generatortest.ClockKind, opts ...generator.Option) generatortest.Subject[snowflake.ID] {
	return c.under(generatortest.Leased{Clock: kind, Options: opts})
}

// leasedIn is the same, with the cells in files.
func (c claim) leasedIn(t testing.TB, kind generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
	return c.under(generatortest.Leased{Clock: kind, Stores: inDirectory(t)})
}

func (c claim) under(l generatortest.Leased) generatortest.Subject[snowflake.ID] {
	l.Strategy = c.strategy
	s := l.Subject()
	s.Name = c.name + " on " + string(l.Clock) + " under a lease"
	s.Claim = c.Claim
	return s
}

// script is a script that names its strategy and clock, if the strategy has a text that
// can be read back.
func (c claim) script(s generatortest.Script, kind generatortest.ClockKind) generatortest.Script {
	if text := fmt.Sprint(c.strategy); parses(text) {
		s.Strategy, s.Clock = text, string(kind)
	}
	return s
}

func parses(strategy string) bool {
	_, err := strategies.Parse(strategy)
	return err == nil
}

// The command line knows every strategy but the one made here, and that their limits are the claims.
func TestScriptsOfClaims(t *testing.T) {
	for _, c := range claims {
		s := c.script(generatortest.Script{Steps: []generatortest.Step{{Do: generatortest.IDs, Count: 1}}}, generatortest.Mono)
		again, err := generatortest.ParseScript(s.String())
		require.NoError(t, err, c.name)
		assert.Equal(t, s, again)
		assert.Equal(t, c.name == "of-ones-own", s.Strategy == "", c.name)
		if s.Strategy != "" {
			strategy, err := strategies.Parse(s.Strategy)
			require.NoError(t, err)
			assert.Equal(t, c.Claim, generatortest.Tickflake(strategy, generatortest.Raw).Claim, c.name)
		}
	}
}
