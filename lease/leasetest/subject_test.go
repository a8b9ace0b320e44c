package leasetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// The scripts that apply to a subject are those of package chaos_test.
func TestLeased(t *testing.T) {
	s, bound := leasetest.Leased{Strategy: strategies.WaitUpTo(5 * time.Millisecond)}.Subject(), generatortest.Bound{Wait: 5 * time.Millisecond}
	assert.Equal(t, []any{"wait:5ms on raw under a lease", generatortest.Claim{Exhausted: bound, Behind: bound}}, []any{s.Name, s.Claim})
}

func TestLeasedWithoutStore(t *testing.T) {
	none := errors.New("no disk")
	script, err := generatortest.ParseScript("ids 1")
	require.NoError(t, err)
	for _, open := range []func() (func() (stores.Store, error), error){
		func() (func() (stores.Store, error), error) { return nil, none },
		func() (func() (stores.Store, error), error) {
			return func() (stores.Store, error) { return nil, none }, nil
		},
	} {
		r := generatortest.RunScript(leasetest.Leased{Strategy: strategies.Default(), Stores: open}.Subject(), script)
		require.Len(t, r.Violations, 1)
		assert.Equal(t, generatortest.NoStart, r.Violations[0].Kind)
		assert.Contains(t, r.Violations[0].Detail, "no disk")
	}
}
