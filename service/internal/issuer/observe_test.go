package issuer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// logged returns an observer, and a function that returns the lines of its log so far.
func logged(sample int64) (*Observer, func() []string) {
	b := &bytes.Buffer{}
	return NewObserver(slog.New(slog.NewTextHandler(b, nil)), sample), func() []string {
		defer b.Reset()
		return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
}

func refusal(code wire.Code) Request {
	return Request{Method: "INCR", Err: &Refusal{Code: code, Err: errors.New("away")}}
}

func TestSample(t *testing.T) {
	t.Parallel()
	o, lines := logged(10)
	for range 95 {
		o.Done(Request{Protocol: GRPC, Method: "Take", Client: NewClient("shop", [32]byte{}, Rights{}), Items: 3})
	}
	found := lines()
	require.Len(t, found, 9)
	assert.EqualValues(t, 95*3, o.Items())
	assert.Contains(t, found[0], "level=INFO msg=request protocol=grpc method=Take client=shop")
	assert.NotContains(t, found[0], "took", "a time that was not measured")
	o, lines = logged(1)
	o.Done(Request{Protocol: GRPC, Method: "Take", Duration: time.Millisecond})
	assert.Contains(t, lines()[0], "took=1ms")
}

// Refused requests are logged without an access log, a few per second for each code.
func TestRefusedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, lines := logged(0)
		for range 100 {
			o.Done(refusal(wire.BadInput))
			o.Done(refusal(wire.Canceled))
		}
		o.Done(refusal(wire.Unavailable))
		o.Done(Request{Err: &Refusal{Code: wire.Internal, Err: &hidden{errInternal, errors.New("10.9.8.7 refused the connection")}}})
		found := lines()
		require.Len(t, found, limit.LogLines+2)
		assert.Contains(t, found[0], "level=INFO")
		assert.Contains(t, found[limit.LogLines], "level=WARN")
		assert.Contains(t, found[limit.LogLines+1], "level=ERROR")
		assert.Contains(t, found[limit.LogLines+1], "10.9.8.7", "the cause, which clients do not see")
		assert.NotContains(t, found[limit.LogLines+1], "see the server's log", "this is the log")
		time.Sleep(time.Second)
		o.Done(refusal(wire.BadInput))
		o.Done(refusal(wire.BadInput))
		found = lines()
		require.Len(t, found, 2)
		assert.Contains(t, found[0], "suppressed=95")
		assert.NotContains(t, found[1], "suppressed")
		for range 10 {
			o.Done(refusal(wire.BadInput))
		}
		lines()
		require.NoError(t, (&Issuer{Observer: o}).End())
		assert.Contains(t, lines()[0], "code=bad_input suppressed=7")
		o.Flush()
		assert.Equal(t, []string{""}, lines())
	})
}

func TestLongErrorsAreCut(t *testing.T) {
	t.Parallel()
	o, lines := logged(0)
	o.Done(Request{Err: &Refusal{Err: errors.New(strings.Repeat("é", 100_000))}})
	assert.Less(t, len(lines()[0]), 2*limit.LogText)
}
