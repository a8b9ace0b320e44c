package lease

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// quickly is json.Unmarshal for what json.Marshal makes of a record. The simulation
// would spend half of its time there.
func quickly(body []byte, r *record) error {
	if bytes.IndexByte(body, '\\') >= 0 || len(body) < 2 {
		return json.Unmarshal(body, r)
	}
	for rest := body[1:]; len(rest) > 1; {
		i := bytes.IndexByte(rest[1:], '"')
		if i < 0 {
			return json.Unmarshal(body, r)
		}
		key := rest[1 : 1+i]
		rest = rest[i+3:] // past the colon
		var value []byte
		if rest[0] == '"' {
			n := bytes.IndexByte(rest[1:], '"')
			value, rest = rest[1:1+n], rest[n+3:]
		} else {
			n := bytes.IndexAny(rest, ",}")
			value, rest = rest[:n], rest[n+1:]
		}
		var err error
		switch string(key) {
		case "holder":
			r.Holder = string(value)
		case "limit":
			r.Limit, err = strconv.ParseUint(string(value), 10, 64)
		case "window":
			r.Window, err = strconv.ParseUint(string(value), 10, 64)
		case "owner":
			r.Owner = string(value)
		case "write":
			r.Write = string(value)
		case "layout":
			r.Layout = string(value)
		case "until": // nobody looks at it
		default:
			return json.Unmarshal(body, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withQuickRecords has records read quickly until it is undone.
func withQuickRecords() (undo func()) {
	slow := unmarshal
	unmarshal = quickly
	return func() { unmarshal = slow }
}

func TestQuickly(t *testing.T) {
	for _, r := range []record{
		{},
		{Holder: "a", Owner: "b c, d", Limit: 1 << 63, Window: 7, Write: "w", Layout: "time:41|node:10|sequence:12 tick:1ms epoch:2026-01-01T00:00:00Z"},
		{Owner: `quoted "x" and \ more`, Write: "<&>"},
	} {
		body, err := json.Marshal(r)
		require.NoError(t, err)
		var got record
		require.NoError(t, quickly(body, &got))
		require.Equal(t, r, got)
	}
}
