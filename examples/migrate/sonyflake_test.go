package migrate_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net"
	"testing"
	"time"

	"github.com/sony/sonyflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

func Example_sonyflake() {
	settings := sonyflake.Settings{MachineID: func() (uint16, error) { return 7, nil }}
	old, err := sonyflake.New(settings)
	if err != nil {
		log.Fatal(err)
	}
	last, err := old.NextID()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	layout := migrate.SonyflakeLayout(settings.StartTime)
	gen, err := generator.Open(ctx, "sonyflake-ids", // or "etcd://…", "postgres://…"
		generator.WithLayout(layout), generator.WithFloor(snowflake.ID(last)))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // releases the machine number

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(uint64(id) > last)
	// Output: true
}

func Example_sonyflakeMachineID() {
	ctx, last := context.Background(), uint64(1)
	settings := sonyflake.Settings{MachineID: func() (uint16, error) { return 7, nil }}
	layout := migrate.SonyflakeLayout(settings.StartTime)

	machine, err := settings.MachineID()
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "sonyflake-machines",
		generator.WithLayout(layout), generator.WithFloor(snowflake.ID(last)), generator.WithNode(int64(machine)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gen.Node(), gen.Close())
	// Output: 7 <nil>
}

func Example_sonyflakeOtherLayout() {
	last := uint64(629_145_600_000_000_000) // the largest there is
	now := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)

	layout, err := migrate.EpochAbove(snowflake.Default(), snowflake.ID(last), now)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout) // a text for snowflake.ParseLayout: keep it
	// Output: time=41,node=10,sequence=12,tick=1ms,epoch=2021-11-29T21:19:00Z
}

// IDs of the old package, whatever its settings, are taken apart as it does.
func TestSonyflakeIDs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		machine := rapid.Uint16().Draw(rt, "machine")
		settings := sonyflake.Settings{MachineID: func() (uint16, error) { return machine, nil }}
		if rapid.Bool().Draw(rt, "own start") {
			settings.StartTime = time.Unix(0, rapid.Int64Range(1, time.Now().UnixNano()-1e9).Draw(rt, "start"))
		}
		layout := migrate.SonyflakeLayout(settings.StartTime)
		old, err := sonyflake.New(settings)
		require.NoError(rt, err)
		before := time.Now()
		var last uint64
		for range rapid.SampledFrom([]int{1, 3, 300}).Draw(rt, "IDs") { // a tick has 256
			last, err = old.NextID()
			require.NoError(rt, err)
			parts, err := layout.Decode(snowflake.ID(last))
			require.NoError(rt, err)
			want := sonyflake.Decompose(last)
			require.Equal(rt, []uint64{want["time"], want["sequence"], want["machine-id"]},
				[]uint64{uint64(parts.Time.Sub(layout.Epoch) / layout.Tick), uint64(parts.Sequence), uint64(parts.Node)})
			require.WithinRange(rt, parts.Time, before.Truncate(layout.Tick), time.Now().Add(layout.Tick))
			require.Zero(rt, parts.Time.UnixNano()%int64(layout.Tick))
			require.EqualValues(rt, machine, parts.Node)
		}
	})
}

// privateAddress is the node number that sonyflake takes without a MachineID: the low 16 bits of
// the first private IPv4 address.
func privateAddress(snowflake.Layout) (int64, error) {
	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsPrivate() && ip.IP.To4() != nil {
			return int64(binary.BigEndian.Uint16(ip.IP.To4()[2:])), nil
		}
	}
	return 0, cmp.Or(err, errors.New("no private IPv4 address"))
}

// Where the old settings have no MachineID, the number is that of a NodeSource.
func TestSonyflakeDefaultMachineID(t *testing.T) {
	old, theirErr := sonyflake.New(sonyflake.Settings{})
	keeper, ourErr := lease.Claim(t.Context(), storetest.NewMemory(),
		lease.WithLayout(snowflake.SonyflakeV1()), lease.WithNode(privateAddress))
	if theirErr != nil {
		require.ErrorIs(t, theirErr, sonyflake.ErrNoPrivateAddress)
		require.ErrorContains(t, ourErr, "private IPv4")
		return
	}
	require.NoError(t, ourErr)
	id, err := old.NextID()
	require.NoError(t, err)
	assert.EqualValues(t, sonyflake.MachineID(id), keeper.Node())
	require.NoError(t, keeper.Close())
}
