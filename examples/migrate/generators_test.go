package migrate_test

import (
	"context"
	"log"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// open opens a generator in place of an old one, as the page of the common steps has it.
func open(ctx context.Context, layout snowflake.Layout, last snowflake.ID) *generator.Generator {
	gen, err := generator.Open(ctx, "ids", generator.WithLayout(layout), generator.WithFloor(last))
	if err != nil {
		log.Fatal(err)
	}
	return gen
}

// issued is an ID of an old generator, and the parts that the old generator says it has.
type issued struct {
	id             int64
	time           time.Time
	node, sequence int64
}

// sonyflakeIssues returns the 300th ID of sonyflake, whose ticks have 256.
func sonyflakeIssues(layout string, settings sonyflake.Settings) func(*testing.T) issued {
	return func(t *testing.T) issued {
		old, err := sonyflake.New(settings)
		require.NoError(t, err)
		var id uint64
		for range 300 {
			id, err = old.NextID()
			require.NoError(t, err)
		}
		parts := sonyflake.Decompose(id)
		at := parse(t, layout).Epoch.Add(time.Duration(parts["time"]) * 10 * time.Millisecond)
		require.WithinRange(t, at, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
		return issued{int64(id), at, int64(parts["machine-id"]), int64(parts["sequence"])}
	}
}

func parse(t *testing.T, layout string) snowflake.Layout {
	t.Helper()
	parsed, err := snowflake.ParseLayout(layout)
	require.NoError(t, err)
	return parsed
}

// Each old generator that is a Go package is followed by one with the layout of its guide, which
// takes the old IDs apart as the old one does, and continues above them. The layouts of the others are presets.
func TestOldGenerators(t *testing.T) {
	seven := func() (uint16, error) { return 7, nil }
	const ownStart = "sonyflake-v1,epoch=2024-03-01T00:00:00.12Z"
	for _, c := range []struct {
		name, layout string
		issue        func(*testing.T) issued
	}{
		{"bwmarrin", "twitter", func(t *testing.T) issued {
			old, err := bwmarrin.NewNode(7)
			require.NoError(t, err)
			id := old.Generate()
			return issued{id.Int64(), time.UnixMilli(id.Time()), id.Node(), id.Step()}
		}},
		{"sonyflake", "sonyflake-v1", sonyflakeIssues("sonyflake-v1", sonyflake.Settings{MachineID: seven})},
		{"sonyflake with a start", ownStart, // of which it drops all below 10 ms
			sonyflakeIssues(ownStart, sonyflake.Settings{MachineID: seven, StartTime: time.Date(2024, 3, 1, 0, 0, 0, 123456789, time.UTC)})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			layout, old := parse(t, c.layout), c.issue(t)
			parts, err := layout.Decode(snowflake.ID(old.id))
			require.NoError(t, err)
			assert.Equal(t, issued{old.id, old.time.UTC(), old.node, old.sequence},
				issued{old.id, parts.Time.UTC(), parts.Node, parts.Sequence})

			gen := open(t.Context(), layout, snowflake.ID(old.id))
			id, err := gen.Next()
			require.NoError(t, err)
			assert.Greater(t, id.Int64(), old.id)
			require.NoError(t, gen.Close())
		})
	}
}
