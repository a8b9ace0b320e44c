//go:build linux

package guest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSamplerFindsSteps(t *testing.T) {
	const ms = time.Millisecond
	m := &sampler{last: Reading{Realtime: 5000 * ms, Monotonic: 100 * ms}}
	at := func(realtime, monotonic time.Duration) { m.add(Reading{Realtime: realtime, Monotonic: monotonic}) }
	at(5001*ms, 101*ms)
	at(5901*ms, 1001*ms) // the thread did not run: no step
	at(5902*ms+smallestStep/2, 1002*ms)
	require.Zero(t, m.steps)
	at(5901*ms, 1003*ms)
	at(5902*ms, 1004*ms)
	at(7903*ms, 1005*ms)
	at(7803*ms, 1006*ms)
	require.Equal(t, 3, m.steps)
	require.Equal(t, 101*ms, m.back)
	require.Equal(t, 2000*ms, m.ahead)
	require.Equal(t, 5902*ms, m.when, "just before the largest")
}

func TestReadClocks(t *testing.T) {
	before, now := time.Now(), readClocks()
	for name, d := range map[string]time.Duration{
		"realtime": now.Realtime - time.Duration(before.UnixNano()), "boottime": now.Boottime - now.Monotonic,
	} {
		require.GreaterOrEqual(t, d, time.Duration(0), name)
	}
	require.Positive(t, now.Raw)
	later := readClocks()
	require.Greater(t, later.Monotonic, now.Monotonic)
}
