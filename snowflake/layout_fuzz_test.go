package snowflake_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// Any text either gives a valid layout that its String gives again, or ErrLayout.
func FuzzParseLayout(f *testing.F) {
	for _, l := range snowflake.Presets() {
		f.Add(l.Name)
		f.Add(l.String())
	}
	for _, spec := range []string{
		"", ",", "=", "/", "//", "37/20/16", "41/10/12,tick=100us", "twitter,epoch=2020-01-01", "1/0/0,epoch=0",
		"time=1,sequence=62", "time=41,sequence=12,a=5,b=5", "time=41,node=10,sequence=12,epoch=1735689600000", "time=1,tick=",
	} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		l, err := snowflake.ParseLayout(spec)
		if err != nil {
			require.ErrorIs(t, err, snowflake.ErrLayout)
			require.NotContains(t, err.Error(), "\n")
			require.Zero(t, l)
			return
		}
		require.NoError(t, l.Validate())
		again, err := snowflake.ParseLayout(l.String())
		require.NoError(t, err)
		l.Name = ""
		require.Equal(t, l, again)
		assert.Equal(t, l.String(), again.String())
	})
}

// Under any layout, every number either decodes to values that compose to it again, or
// gives ErrRange.
func FuzzLayoutDecode(f *testing.F) {
	f.Add("twitter", int64(1541815603606036480))
	f.Add("1/31/31,tick=1h", int64(1<<62))
	f.Add("62/1/0,tick=1h", int64(-1))
	f.Fuzz(func(t *testing.T, spec string, number int64) {
		l, err := snowflake.ParseLayout(spec)
		if err != nil {
			return
		}
		d, err := l.Decode(snowflake.ID(number))
		if err != nil {
			require.ErrorIs(t, err, snowflake.ErrRange)
			return
		}
		id, err := l.Compose(d.Time, d.Node, d.Sequence)
		require.NoError(t, err)
		require.EqualValues(t, number, id)
	})
}
