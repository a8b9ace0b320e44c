package lease_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// After many lines, that an outage goes on is still logged, and that it is over.
func TestTheLastLineIsLogged(t *testing.T) {
	const window = 60 * time.Millisecond
	for name, before := range map[string]struct{ damaged, outages int }{
		"after many outages":       {0, 200},
		"after many damaged cells": {255, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			memory := storetest.NewMemory()
			for node := range before.damaged {
				_, err := memory.Swap(t.Context(), cell.NodeKey(int64(node)), 0, []byte("damaged"))
				require.NoError(t, err)
			}
			store, away := memory.Client(), false
			store.Before = func(context.Context, storetest.Op) storetest.Fault {
				if away {
					return storetest.Unavailable
				}
				return storetest.None
			}
			layout := snowflake.Default()
			layout.NodeBits = 8
			var log bytes.Buffer
			k := claim(t, store, clock, lease.WithLayout(layout), lease.WithWindow(window), logTo(&log))
			live := func(d time.Duration) {
				for end := clock.Now().Add(d); clock.Now().Before(end); {
					clock.Advance(first(k.Poll(t.Context())))
				}
			}
			for range before.outages {
				away = true
				live(2 * window)
				away = false
				live(2 * window)
			}
			away = true
			live(2 * time.Minute)
			_, limit := k.Granted()
			for _, line := range []string{`level=ERROR msg="lease: grant ended" node=%d at=%s `, `level=WARN msg="lease: not extended yet" node=%d "good until"=%s `} {
				assert.Contains(t, log.String(), fmt.Sprintf(line, k.Node(), limit.Format("2006-01-02T15:04:05.000Z")))
			}
			away = false
			log.Reset()
			live(2 * time.Minute)
			assert.Contains(t, log.String(), `level=INFO msg="lease: recovered" after=`)
		})
	}
}
