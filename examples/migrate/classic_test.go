package migrate_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func Example_twitter() {
	ctx := context.Background()
	datacenter, worker := int64(11), int64(26)
	last := snowflake.ID(1541815603606036480)

	layout := snowflake.Twitter()
	clock, err := migrate.StartAfter(ctx, layout, last)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "twitter-ids", generator.WithLayout(layout), generator.WithClock(clock),
		generator.WithNodeParts(datacenter, worker))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	parts, err := gen.Layout().Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id > last, parts.Parts)
	// Output: true map[datacenter:11 worker:26]
}

func Example_leaf() {
	ctx := context.Background()
	last := snowflake.ID(1541815603606036480)

	layout := snowflake.Leaf()
	clock, err := migrate.StartAfter(ctx, layout, last)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "leaf-ids", // or "zk://…", with Leaf's servers
		generator.WithLayout(layout), generator.WithClock(clock), generator.WithSequenceStart(strategies.LeafStart()))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id > last)
	// Output: true
}

func Example_baidu() {
	// timeBits 29, workerBits 21, seqBits 13, epochStr 2016-09-20, on hosts in China
	layout, err := snowflake.ParseLayout("time=29,worker=21,sequence=13,tick=1s,epoch=2016-09-20T00:00:00+08:00")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout.End().Format(time.DateOnly))
	parts, err := layout.Decode(4611686018427396097)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts)
	// Output:
	// 2033-09-24
	// 4611686018427396097: 2025-03-23T13:24:16.000Z, node 1 (worker 1), sequence 1
}

// The three generators put IDs together as their sources have it: shifts and an or.
func TestClassicIDs(t *testing.T) {
	const twepoch = 1288834974657
	baiduEpoch := time.Date(2016, 5, 19, 16, 0, 0, 0, time.UTC).Unix()
	for name, put := range map[string]func(at time.Time, node, sequence int64) int64{
		"twitter": func(at time.Time, node, sequence int64) int64 {
			return (at.UnixMilli()-twepoch)<<22 | node>>5<<17 | node&31<<12 | sequence
		},
		"leaf": func(at time.Time, node, sequence int64) int64 {
			return (at.UnixMilli()-twepoch)<<22 | node<<12 | sequence
		},
		"baidu": func(at time.Time, node, sequence int64) int64 {
			return (at.Unix()-baiduEpoch)<<35 | node<<13 | sequence
		},
	} {
		layout, ok := snowflake.Preset(name)
		require.True(t, ok)
		rapid.Check(t, func(t *rapid.T) {
			at := time.UnixMilli(rapid.Int64Range(layout.Epoch.UnixMilli(), layout.End().UnixMilli()-1000).Draw(t, "time")).UTC()
			node := rapid.Int64Range(0, 1<<layout.NodeBits-1).Draw(t, "node")
			sequence := rapid.Int64Range(0, 1<<layout.SequenceBits-1).Draw(t, "sequence")
			parts, err := layout.Decode(snowflake.ID(put(at, node, sequence)))
			require.NoError(t, err)
			assert.Equal(t, at.Truncate(layout.Tick), parts.Time)
			assert.Equal(t, []int64{node, sequence}, []int64{parts.Node, parts.Sequence})
		})
	}
}

// Baidu's cached generator numbers seconds ahead of the clock, and never looks back.
func TestBaiduAheadOfTheClock(t *testing.T) {
	layout, err := snowflake.ParseLayout("time=29,worker=21,sequence=13,tick=1s,epoch=2016-09-20T00:00:00+08:00")
	require.NoError(t, err)
	last, err := layout.Compose(time.Now().Add(2*time.Hour), 1<<21-1, 8191)
	require.NoError(t, err)
	_, err = migrate.StartAfter(t.Context(), layout, last)
	require.ErrorContains(t, err, "move the epoch")

	moved, err := migrate.EpochAbove(layout, last, time.Now())
	require.NoError(t, err)
	assert.Less(t, layout.Epoch.Sub(moved.Epoch), 2*time.Hour+2*time.Minute)
	id, err := openAfter(t, moved, last, lease.WithNode(lease.NodeNumber(0))).Next()
	require.NoError(t, err)
	assert.Greater(t, id, last)
}

// The default layout of Baidu ended with the largest numbers there are.
func TestNothingIsAboveBaidusEnd(t *testing.T) {
	_, err := generator.New(generator.WithNode(0), generator.WithLayout(snowflake.Baidu()))
	require.ErrorIs(t, err, snowflake.ErrLayout)
	last, err := snowflake.Baidu().Max(snowflake.Baidu().End().Add(-time.Second))
	require.NoError(t, err)
	assert.EqualValues(t, uint64(1<<63-1), last)
	_, err = migrate.EpochAbove(snowflake.Default(), last, time.Now())
	assert.Error(t, err)
}
