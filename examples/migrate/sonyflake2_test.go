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

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

func Example_sonyflake2() {
	ctx, clock := context.Background(), monoclock.New()
	machineID := func() (int, error) { return 7, nil }

	machine, err := machineID()
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "sonyflake2-ids",
		generator.WithLayout(snowflake.Sonyflake()), // of version 2, with settings that leave it as it is
		generator.WithClock(clock), generator.WithNode(int64(machine)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gen.Node(), gen.Close())
	// Output: 7 <nil>
}

func Example_sonyflake2Settings() {
	// BitsSequence 10, BitsMachineID 12, TimeUnit time.Millisecond, StartTime 2024-03-01 in UTC
	layout, err := snowflake.ParseLayout("time=41,sequence=10,node=12,tick=1ms,epoch=2024-03-01T00:00:00Z")
	if err != nil {
		log.Fatal(err)
	}
	elapsed := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC).Sub(layout.Epoch).Milliseconds()
	parts, err := layout.Decode(snowflake.ID(elapsed<<22 | 3<<12 | 7))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Time, parts.Node, parts.Sequence)
	// Output: 2026-09-01 12:00:00 +0000 UTC 7 3
}

// sonyflake2 puts an ID together by hand, as the documentation of version 2 has it: whole
// units since 1970, less those of the start, then the sequence, then the machine.
func sonyflake2(at, start time.Time, unit time.Duration, bitsSequence, bitsMachineID int, sequence, machine int64) snowflake.ID {
	elapsed := at.UnixNano()/int64(unit) - start.UnixNano()/int64(unit)
	return snowflake.ID(elapsed<<(bitsSequence+bitsMachineID) | sequence<<bitsMachineID | machine)
}

var sonyflake2Start = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// The layout of the default settings: 39 bits of 10 ms since 2025-01-01, 8 of sequence, 16 of
// machine; and one of other settings, with a start that is no whole unit.
func TestSonyflake2IDs(t *testing.T) {
	own, err := snowflake.ParseLayout("time=43,sequence=6,node=14,tick=4ms,epoch=2024-03-01T10:00:00.004Z")
	require.NoError(t, err)
	start := time.Date(2024, 3, 1, 10, 0, 0, 7_999_999, time.UTC) // rounded down to 4 ms
	rapid.Check(t, func(rt *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(start.Add(time.Hour*24*365).UnixMilli(), 4e12).Draw(rt, "time")).UTC()
		sequence := rapid.Int64Range(0, 1<<6-1).Draw(rt, "sequence")
		machine := rapid.Int64Range(0, 1<<14-1).Draw(rt, "machine")
		for _, c := range []struct {
			layout snowflake.Layout
			id     snowflake.ID
		}{
			{snowflake.Sonyflake(), sonyflake2(at, sonyflake2Start, 10*time.Millisecond, 8, 16, sequence, machine)},
			{own, sonyflake2(at, start, 4*time.Millisecond, 6, 14, sequence, machine)},
		} {
			parts, err := c.layout.Decode(c.id)
			require.NoError(rt, err)
			assert.Equal(rt, at.Truncate(c.layout.Tick), parts.Time)
			assert.Equal(rt, []int64{sequence, machine}, []int64{parts.Sequence, parts.Node})
		}
	})
}

// New IDs are larger than those of version 2, and are to it what its own are. With the layout
// of version 1 they would be larger, too, and be read as of ten years later.
func TestSonyflake2GoesOn(t *testing.T) {
	now := time.Now()
	last := sonyflake2(now, sonyflake2Start, 10*time.Millisecond, 8, 16, 255, 65535)
	late := snowflake.SonyflakeV1()
	for _, layout := range []snowflake.Layout{snowflake.Sonyflake(), late} {
		id, err := openAfter(t, layout, last).Next()
		require.NoError(t, err)
		assert.Greater(t, id, last)
		read := sonyflake2Start.Add(time.Duration(id>>24) * 10 * time.Millisecond)
		if layout.Epoch.Equal(late.Epoch) {
			read = read.Add(-sonyflake2Start.Sub(late.Epoch))
		}
		assert.WithinRange(t, read, now.Add(-time.Second), time.Now().Add(time.Second))
	}
	assert.Equal(t, 10*365*24*time.Hour+125*24*time.Hour, sonyflake2Start.Sub(late.Epoch).Round(time.Hour)) // ten years, four months
}
