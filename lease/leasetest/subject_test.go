package leasetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// crashing is a Store whose locks the test has to free.
type crashing struct {
	storetest.LockingMemory
	crashes *int
}

func (c crashing) Crash() {
	*c.crashes++
	c.LockingMemory.Crash()
}

func run(t *testing.T, l leasetest.Leased, text string) generatortest.Result {
	t.Helper()
	script, err := generatortest.ParseScript(text)
	require.NoError(t, err)
	return generatortest.RunScript(l.Subject(), script)
}

func TestLeased(t *testing.T) {
	l := leasetest.Leased{Strategy: strategies.WaitUpTo(5 * time.Millisecond)}
	s, bound := l.Subject(), generatortest.Bound{Wait: 5 * time.Millisecond}
	assert.Equal(t, []any{"wait:5ms on raw under a lease", lease.DefaultLocalWindow, generatortest.Claim{Exhausted: bound, Behind: bound}}, []any{s.Name, s.Reserve, s.Claim})

	r := run(t, l, "ids 100; step -1s; crash; ids 10; pass 5s; ids 10; takeover 1m; ids 10; restart; ids 10")
	assert.True(t, r.OK(), "%v", r)
	assert.GreaterOrEqual(t, r.Errors, 10, "the first 10 after the crash begin 4 s ahead of the clock")
	assert.GreaterOrEqual(t, r.Issued, 130)
}

// On a store with locks, a process that starts must find the one before dead.
func TestLeasedOnLocks(t *testing.T) {
	crashes := 0
	l := leasetest.Leased{Strategy: strategies.Default(), Clock: generatortest.Mono, Window: time.Second, Stores: func() (func() (stores.Store, error), error) {
		cells := storetest.NewMemory()
		return func() (stores.Store, error) { return crashing{cells.Client().Locking(), &crashes}, nil }, nil
	}}
	r := run(t, l, "ids 10; crash; pass 2s; ids 10; takeover 3s; ids 10")
	assert.True(t, r.OK(), "%v", r)
	assert.Equal(t, 2, crashes)
}

func TestLeasedWithoutStore(t *testing.T) {
	none := errors.New("no disk")
	for _, open := range []func() (func() (stores.Store, error), error){
		func() (func() (stores.Store, error), error) { return nil, none },
		func() (func() (stores.Store, error), error) {
			return func() (stores.Store, error) { return nil, none }, nil
		},
	} {
		r := run(t, leasetest.Leased{Strategy: strategies.Default(), Stores: open}, "ids 1")
		require.Len(t, r.Violations, 1)
		assert.Equal(t, generatortest.NoStart, r.Violations[0].Kind)
		assert.Contains(t, r.Violations[0].Detail, "no disk")
	}
}
