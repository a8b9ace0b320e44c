package lease

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
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

func TestLowBits(t *testing.T) {
	address := func(s string) net.Addr {
		ip, network, err := net.ParseCIDR(s)
		require.NoError(t, err)
		return &net.IPNet{IP: ip, Mask: network.Mask}
	}
	for _, test := range []struct {
		addresses []string
		bits      int
		want      int64 // or -1
	}{
		{[]string{"127.0.0.1/8", "10.1.2.3/24"}, 10, 2<<8&0x3ff | 3},
		{[]string{"192.168.7.9/16"}, 8, 9},
		{[]string{"172.16.255.255/12"}, 16, 0xffff},
		{[]string{"10.0.0.5/8", "192.168.0.6/16"}, 10, 5}, // the first
		{[]string{"8.8.8.8/32", "172.32.0.1/12", "fd00::1/64"}, 10, -1},
		{[]string{"10.1.2.3/24"}, 0, 0},
		{nil, 10, -1},
	} {
		var addresses []net.Addr
		for _, s := range test.addresses {
			addresses = append(addresses, address(s))
		}
		got, err := lowBits(addresses, test.bits)
		if test.want < 0 {
			require.Error(t, err, test.addresses)
			continue
		}
		require.NoError(t, err, test.addresses)
		require.Equal(t, test.want, got, test.addresses)
	}
}

func TestHashed(t *testing.T) {
	counts := make([]int, 64)
	for i := range 6400 {
		n := hashed("host-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), 6)
		counts[n]++
	}
	for n, count := range counts {
		require.InDelta(t, 100, count, 50, "number %d", n)
	}
	require.Equal(t, hashed("a", 10), hashed("a", 10))
	require.Zero(t, hashed("a", 0))
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
		var option *OptionError
		require.ErrorAs(t, err, &option)
		require.Equal(t, "WithNode", option.Option)
	}
	_, err := Claim(t.Context(), storetest.NewMemory(), WithNode(NodeNumber(1024)))
	require.ErrorIs(t, err, snowflake.ErrRange)
	require.ErrorContains(t, err, "0 to 1023")
	for _, source := range []NodeSource{NodeFromPrivateIPv4(), NodeFromHostName(), NodeFromStatefulSet()} {
		n, err := source(snowflake.Default())
		if err == nil {
			require.GreaterOrEqual(t, n, int64(0))
		}
	}
}
