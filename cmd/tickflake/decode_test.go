package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
)

// IDs that are documented in public.
func TestDecodeKnownIDs(t *testing.T) {
	tests := []struct{ layout, id, text, json string }{
		{
			"twitter", "1541815603606036480",
			"1541815603606036480: 2022-06-28T16:07:40.105Z, node 378 (datacenter 11, worker 26), sequence 0",
			`{"id":"1541815603606036480","time":"2022-06-28T16:07:40.105Z","node":378,"parts":{"datacenter":11,"worker":26},"sequence":0}`,
		},
		{
			"discord", "175928847299117063",
			"175928847299117063: 2016-04-30T11:18:25.796Z, node 32 (process 0, worker 1), sequence 7",
			`{"id":"175928847299117063","time":"2016-04-30T11:18:25.796Z","node":32,"parts":{"process":0,"worker":1},"sequence":7}`,
		},
		{
			"instagram", "2384288897814875714",
			"2384288897814875714: 2020-08-26T13:43:27.313Z, node 2675 (shard 2675), sequence 578",
			`{"id":"2384288897814875714","time":"2020-08-26T13:43:27.313Z","node":2675,"parts":{"shard":2675},"sequence":578}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.layout, func(t *testing.T) {
			assert.Equal(t, result{0, tt.text + "\n", ""}, tickflake("decode", "--layout", tt.layout, tt.id))
			assert.Equal(t, result{0, tt.json + "\n", ""}, tickflake("decode", "--layout", tt.layout, "--format", "json", tt.id))
			assert.Equal(t, result{0, tt.text + "\n", ""}, tickflakeReading(tt.id, "decode", "--layout", tt.layout))
		})
	}
}

func TestDecodeForms(t *testing.T) {
	const want = "1541815603606036480: 2022-06-28T16:07:40.105Z, node 378 (datacenter 11, worker 26), sequence 0\n"
	for form, id := range map[string]string{
		"dec": "1541815603606036480", "base32": "1asd13xh1f800", "base58": "4aaW4SzAyQK", "base62": "1ptWyK4WgZU",
	} {
		assert.Equal(t, result{0, want, ""}, tickflake("decode", "--layout", "twitter", "--from", form, id))
	}
}

func TestDecodeBadArguments(t *testing.T) {
	got := tickflake("decode", "7", "12a", "", " 8 ", "--", "-5")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "7: 2025-01-01T00:00:00.000Z, node 0, sequence 7\n8: 2025-01-01T00:00:00.000Z, node 0, sequence 8\n", got.out)
	assert.Equal(t, `tickflake: argument 2: decimal ID "12a": malformed: bad character "a" at offset 2
tickflake: argument 3: decimal ID: wrong length: empty, want 1 to 19 digits
tickflake: argument 5: decimal ID "-5": malformed: bad character "-" at offset 0
`, got.err)
}

func TestDecodeBadLines(t *testing.T) {
	long := strings.Repeat("9", 1_000_000)
	lines := []string{
		"  7\t\r",
		"",
		"   ",
		"twelve",
		long,
		"9223372036854775808",
		"9",
		strings.Repeat(" ", 1000) + "10",
		"\xff\x00",
		"11", // the last one without a line break
	}
	got := tickflakeReading(strings.Join(lines, "\n"), "decode")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, `7: 2025-01-01T00:00:00.000Z, node 0, sequence 7
9: 2025-01-01T00:00:00.000Z, node 0, sequence 9
10: 2025-01-01T00:00:00.000Z, node 0, sequence 10
11: 2025-01-01T00:00:00.000Z, node 0, sequence 11
`, got.out)
	assert.Equal(t, `tickflake: line 4: decimal ID "twelve": malformed: bad character "t" at offset 0
tickflake: line 5: longer than 65536 bytes, so it is no ID
tickflake: line 6: decimal ID "9223372036854775808": out of range: exceeds 9223372036854775807
tickflake: line 9: decimal ID "\xff\x00": malformed: bad character "\xff" at offset 0
`, got.err)
}

func TestDecodeLongLines(t *testing.T) {
	const eight = "8: 2025-01-01T00:00:00.000Z, node 0, sequence 8\n"
	for _, length := range []int{command.BufferSize - 2, command.BufferSize - 1, command.BufferSize, command.BufferSize + 1, 2*command.BufferSize - 1, 2 * command.BufferSize, 2*command.BufferSize + 1} {
		t.Run(strconv.Itoa(length), func(t *testing.T) {
			line := strings.Repeat("x", length)
			for _, input := range []string{line + "\n8\n", line + "\n8", "8\n" + line + "\n", "8\n" + line} {
				got := tickflakeReading(input, "decode")
				assert.Equal(t, 1, got.code)
				assert.Equal(t, eight, got.out)
				assert.Equal(t, 1, strings.Count(got.err, "\n"), "one report for one line")
			}
		})
	}
}

func TestDecodeOutOfLayout(t *testing.T) {
	got := tickflakeReading("9007199254740992\n", "decode", "--layout", "javascript")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.out)
	assert.Truef(t, matches("tickflake: line 1: ID 9007199254740992 is out of range: it takes 54 bits, 1 more than the layout's fields have*\n", got.err), got.err)
}

func TestDecodeNothing(t *testing.T) {
	assert.Equal(t, result{0, "", ""}, tickflake("decode"))
	assert.Equal(t, result{0, "", ""}, tickflakeReading("\n \n\n", "decode"))
}

func TestDecodeReadError(t *testing.T) {
	input := io.MultiReader(strings.NewReader("7\n8"), iotest.ErrReader(errors.New("tape torn")))
	var out, err strings.Builder
	code := run(context.Background(), []string{"decode"}, input, &out, &err)
	assert.Equal(t, 1, code)
	assert.Equal(t, "7: 2025-01-01T00:00:00.000Z, node 0, sequence 7\n", out.String(), "8 may be the start of another number")
	assert.Equal(t, "tickflake: tape torn\n", err.String())
}

// conversation runs decode with a reader and a writer that are served in turn.
func conversation(t *testing.T) (say io.WriteCloser, hear *bufio.Reader, interrupt context.CancelCauseFunc, end func() result) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	in, say := io.Pipe()
	heard, out := io.Pipe()
	var stderr strings.Builder
	code := make(chan int, 1)
	go func() {
		c := run(ctx, []string{"decode"}, in, out, &stderr)
		out.Close()
		code <- c
	}()
	hear = bufio.NewReader(heard)
	return say, hear, cancel, func() result {
		rest, err := io.ReadAll(hear)
		require.NoError(t, err)
		return result{<-code, string(rest), stderr.String()}
	}
}

func TestDecodeAnswersAtOnce(t *testing.T) {
	say, hear, _, end := conversation(t)
	for _, id := range []string{"7", "8", "9"} {
		_, err := io.WriteString(say, id+"\n")
		require.NoError(t, err)
		line, err := hear.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, id+": 2025-01-01T00:00:00.000Z, node 0, sequence "+id+"\n", line)
	}
	require.NoError(t, say.Close())
	assert.Equal(t, result{0, "", ""}, end())
}

func TestDecodeInterruptedWhileReading(t *testing.T) {
	say, hear, interrupt, end := conversation(t)
	_, err := io.WriteString(say, "7\n8")
	require.NoError(t, err)
	_, err = hear.ReadString('\n')
	require.NoError(t, err)
	interrupt(cli.Interruption{Signal: syscall.SIGTERM})
	assert.Equal(t, result{143, "", "tickflake: terminated in line 2\n"}, end())
}

// BenchmarkDecode shows the time per line, and allocations of which few are those of the start.
func BenchmarkDecode(b *testing.B) {
	const lines = 10_000
	for _, line := range []string{"decode", "decode --format json", "decode --layout twitter"} {
		b.Run(line, func(b *testing.B) {
			input := strings.Repeat("1541815603606036480\n", lines)
			for b.Loop() {
				require.Zero(b, run(b.Context(), strings.Fields(line), strings.NewReader(input), io.Discard, io.Discard))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lines), "ns/line")
		})
	}
}
