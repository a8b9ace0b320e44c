package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestRestoredAmongCalls calls Restored and Poll while the store hangs, and calls of others
// wait for numbers all the time.
func TestRestoredAmongCalls(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		synctest.Test(t, func(t *testing.T) {
			store := storetest.NewMemory()
			s := open(t, store, "orders", sequence.Definition{Mode: mode})
			next(t, s)
			synctest.Wait()
			store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
				<-ctx.Done()
				return storetest.None
			}
			for range 4 {
				go func() {
					for !errors.Is(s.Err(), sequence.ErrClosed) {
						_, _ = s.Next(context.Background())
					}
				}()
			}
			time.Sleep(time.Minute)
			for name, call := range map[string]func(context.Context) error{"Restored": s.Restored, "Poll": s.Poll} {
				ended := make(chan error, 1)
				go func() { ended <- call(context.Background()) }()
				select {
				case err := <-ended:
					assert.ErrorIs(t, err, sequence.ErrStore, name)
				case <-time.After(4 * sequence.DefaultTimeout):
					assert.Fail(t, "waits for the calls to end", name)
				}
			}
			_ = s.Close()
		})
	}
}
