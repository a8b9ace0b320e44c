package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

// record is what --format json prints.
type record struct {
	ID       string
	Time     time.Time
	Node     int64
	Parts    map[string]int64
	Sequence int64
}

func records(t *testing.T, r result) []record {
	t.Helper()
	require.Equal(t, result{0, r.out, ""}, r)
	var all []record
	for _, line := range r.lines() {
		var one record
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return all
}

func TestGenerateMany(t *testing.T) {
	const count = 200_000
	got := tickflake("generate", "--node", "7", "--count", strconv.Itoa(count))
	require.Equal(t, 0, got.code)
	require.Empty(t, got.err)
	lines := got.lines()
	require.Len(t, lines, count)
	layout := snowflake.Default()
	last := snowflake.ID(-1)
	for _, line := range lines {
		id, err := snowflake.Parse(line)
		require.NoError(t, err)
		decoded, err := layout.Decode(id)
		require.NoError(t, err)
		if id <= last || decoded.Node != 7 {
			t.Fatalf("%s follows %d", decoded, last)
		}
		last = id
	}
}

// Every form that generate writes is one that decode reads.
func TestRoundTrip(t *testing.T) {
	for _, layout := range []string{"tickflake", "twitter", "sonyflake", "javascript", "time=38,rack=3,host=7,sequence=8,tick=10ms"} {
		parsed, err := snowflake.ParseLayout(layout)
		require.NoError(t, err)
		for _, form := range formNames {
			t.Run(layout+" "+form, func(t *testing.T) {
				before := time.Now().Truncate(parsed.Tick)
				ids := tickflake("generate", "--count", "300", "--layout", layout, "--node", "93", "--format", form)
				require.Equal(t, 0, ids.code)
				require.Len(t, ids.lines(), 300)
				got := records(t, tickflakeReading(ids.out, "decode", "--layout", layout, "--from", form, "--format", "json"))
				require.Len(t, got, 300)
				for i, r := range got {
					assert.Equal(t, int64(93), r.Node)
					assert.WithinRange(t, r.Time, before, time.Now())
					if form == "dec" {
						assert.Equal(t, ids.lines()[i], r.ID)
					}
				}
			})
		}
	}
}

func TestGenerateJSONIsWhatDecodePrints(t *testing.T) {
	generated := tickflake("generate", "--format", "json", "--count", "50", "--layout", "twitter", "--node", "378")
	var ids []string
	for _, r := range records(t, generated) {
		assert.Equal(t, map[string]int64{"datacenter": 11, "worker": 26}, r.Parts)
		ids = append(ids, r.ID)
	}
	decoded := tickflake(append([]string{"decode", "--format", "json", "--layout", "twitter"}, ids...)...)
	assert.Equal(t, generated, decoded)
}

func TestNodeIsDrawnFromTheWholeRangeWithoutState(t *testing.T) {
	drawn := func(args ...string) int64 {
		got := tickflake(append([]string{"generate", "--format", "json", "--no-state"}, args...)...)
		assert.Equal(t, noStateWarning+"\n", got.err)
		got.err = ""
		return records(t, got)[0].Node
	}
	seen := map[int64]bool{}
	for range 64 {
		seen[drawn("--layout", "41/1/12")] = true
	}
	assert.Equal(t, map[int64]bool{0: true, 1: true}, seen)

	seen = map[int64]bool{}
	for range 64 {
		seen[drawn()] = true
	}
	assert.Greater(t, len(seen), 32, "64 of 1024 numbers drawn at random hardly repeat")

	assert.Zero(t, drawn("--layout", "41/0/12"), "the only node there is")
	assert.Equal(t, int64(7), drawn("--node", "7"))
}

// A batch must not turn a strategy that allows for one wait into one that has to
// allow for many.
func TestStrategyJudgesIDsOneByOne(t *testing.T) {
	got := tickflake("generate", "--layout", "41/10/0", "--count", "100", "--strategy", "wait:50ms")
	assert.Equal(t, result{0, got.out, ""}, got)
	assert.Len(t, got.lines(), 100)
}

func TestStrategyIsObeyed(t *testing.T) {
	const hour = "time=41,sequence=2,tick=1h"
	// The second run begins after the IDs of the first only if they share their state.
	got := tickflake("generate", "--layout", hour, "--count", "10", "--strategy", "reject", "--store", t.TempDir())
	assert.Equal(t, 1, got.code)
	assert.Len(t, got.lines(), 4, "what the tick holds is written")
	assert.Truef(t, matches("tickflake: sequence exhausted: *; 4 of 10 IDs written\n", got.err), got.err)

	got = tickflake("generate", "--layout", hour, "--count", "10", "--strategy", "borrow:3h", "--store", t.TempDir())
	assert.Equal(t, result{0, got.out, ""}, got)
	assert.Len(t, got.lines(), 10)
}

// Lines are not held back while the next ID is hours away.
func TestGenerateFlushesBeforeItWaits(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	reader, writer := io.Pipe()
	state := t.TempDir()
	var stderr strings.Builder
	code := make(chan int)
	go func() {
		c := run(ctx, strings.Fields("generate --layout time=41,sequence=1,tick=1h --count 9 --strategy wait --store "+state), strings.NewReader(""), writer, &stderr)
		writer.Close()
		code <- c
	}()
	lines := bufio.NewScanner(reader)
	require.True(t, lines.Scan())
	require.True(t, lines.Scan())
	cancel(cli.Interruption{Signal: syscall.SIGINT})
	assert.False(t, lines.Scan())
	assert.Equal(t, 130, <-code)
	assert.Equal(t, "tickflake: interrupted; 2 of 9 IDs written\n", stderr.String())
}

// A run that fails may fail to write its last IDs as well.
func TestCutShort(t *testing.T) {
	for _, tt := range []struct {
		flush error
		want  string
	}{
		{nil, "no IDs left; 1 of 2 IDs written"},
		{errors.New("disk on fire"), "no IDs left; disk on fire"},
		{command.ErrReaderGone, "no IDs left"},
	} {
		room := 0
		if tt.flush == nil {
			room = 2
		}
		out := bufio.NewWriter(&failingWriter{room, tt.flush})
		_, err := out.WriteString("7\n")
		require.NoError(t, err)
		assert.EqualError(t, cutShort(errors.New("no IDs left"), out, "IDs", 1, 2), tt.want)
	}
}
