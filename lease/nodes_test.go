package lease

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestOrdinal(t *testing.T) {
	for host, want := range map[string]int64{
		"web-0": 0, "web-7": 7, "a-b-12": 12, "web-7.web.default.svc.cluster.local": 7, "web-007": 7,
		"web": -1, "-7": -1, "7": -1, "web-": -1, "web-x": -1, "web-+7": -1, "web--7": 7, "web-7x": -1, "": -1, "web-99999999999999999999": -1,
	} {
		got, err := ordinal(host)
		if want < 0 {
			require.Error(t, err, host)
			require.ErrorContains(t, err, host)
			continue
		}
		require.NoError(t, err, host)
		require.Equal(t, want, got, host)
	}
}

func TestNodeFromEnv(t *testing.T) {
	const name = "TICKFLAKE_TEST_NODE"
	source := NodeFromEnv(name)
	for text, want := range map[string]int64{"0": 0, "7": 7, " 12\n": 12, "": -2, "x": -2, "1.5": -2, "0x10": -2, "99999999999999999999": -2} {
		t.Setenv(name, text)
		got, err := source(snowflake.Default())
		if want == -2 {
			require.ErrorContains(t, err, name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, os.Unsetenv(name))
	_, err := source(snowflake.Default())
	require.ErrorContains(t, err, name)
}

// What a source gives is looked at before anything is asked of the store.
func TestNodeOutOfRange(t *testing.T) {
	broken := errors.New("no number here")
	for _, source := range []NodeSource{NodeNumber(-1), NodeNumber(1024), NodeNumber(1 << 62), nil, func(snowflake.Layout) (int64, error) { return 0, broken }} {
		_, err := Claim(t.Context(), storetest.NewMemory(), WithNode(source))
		var option *stores.OptionError
		require.ErrorAs(t, err, &option)
		require.Equal(t, "WithNode", option.Option)
	}
	_, err := Claim(t.Context(), storetest.NewMemory(), WithNode(NodeNumber(1024)))
	require.ErrorIs(t, err, snowflake.ErrRange)
	require.ErrorContains(t, err, "0 to 1023")
}
