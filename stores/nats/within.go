package nats

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/stores/engine"
)

// afterwards is how long a call may take to return by itself after its context has ended:
// its own error has the reason.
const afterwards = 100 * time.Millisecond

// within is [engine.Wait] with that time. While the driver connects again, a call does not
// end with its context: the driver holds its lock until the resolver and the server have
// answered, or it has given them up.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(afterwards, cancel) })()
	return engine.Wait(during, call)
}
