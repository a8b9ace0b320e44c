package nats

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// afterwards is the time for a call to return by itself once its context has ended: its
// error says more.
const afterwards = 100 * time.Millisecond

// within is [stores.Wait] with that time. The driver does not end a call with its context
// while it connects again: it holds its lock until the resolver and the server have
// answered, or it has given them up.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(afterwards, cancel) })()
	return stores.Wait(during, call)
}
