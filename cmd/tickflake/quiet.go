package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// The Redis driver writes to standard error of each connection that fails, and then
// returns only that the time is up. So what it writes is kept as the reason.
func init() { redis.SetLogger(dialing) }

var dialing = new(dialLog)

// dialLog keeps the last failure of a connection that was logged.
type dialLog struct{ last atomic.Pointer[net.OpError] }

// Printf takes a line of the driver's log.
func (d *dialLog) Printf(_ context.Context, _ string, values ...any) {
	for _, value := range values {
		var failure *net.OpError
		if err, ok := value.(error); ok && errors.As(err, &failure) {
			d.last.Store(failure)
		}
	}
}

// explain adds to err, of a store with the scheme, why there is no connection, if that
// was logged.
func (d *dialLog) explain(scheme string, err error) error {
	failure := d.last.Load()
	if failure != nil && strings.HasPrefix(scheme, "redis") && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", err, failure)
	}
	return err
}
