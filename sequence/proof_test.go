package sequence_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestMarkMeetsOtherWrites has a newcomer write so much before the mark lands that the cell
// alone proves nothing any more.
func TestMarkMeetsOtherWrites(t *testing.T) {
	store := storetest.NewMemory()
	d := sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}
	a := open(t, store, "orders", d, sequence.WithPolling())
	restore := store.Snapshot()
	nextN(t, a, 10)
	restore()
	c := open(t, store, "orders", d, sequence.WithPolling())
	armed := true
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if armed && bytes.Contains(op.Value, []byte(`"lost":true`)) {
			armed = false
			for range 5 {
				nextN(t, c, 10)
			}
		}
		return storetest.None
	}
	err := a.Poll(t.Context())
	for range 30 {
		if err == nil {
			_, err = a.Next(t.Context())
		}
	}
	require.False(t, armed)
	require.ErrorIs(t, err, stores.ErrWentBack)
	_, err = c.NextN(t.Context(), 1000)
	require.ErrorIs(t, err, stores.ErrWentBack)
}
