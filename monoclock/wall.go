package monoclock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrWall is wrapped by the error of [AwaitWall] if the wall clock may still be off by more than it was asked
// to wait for.
var ErrWall = errors.New("the wall clock may be wrong")

// WallError returns how far the machine's wall clock may be off, as the kernel says, or false if it does not
// say. On Linux it is the maxerror of adjtimex: about 2 s at most on a healthy host with systemd-timesyncd, and
// up to 16 s, which means that nobody has set the clock since the boot or its last step. A virtual machine in
// which no program sets the clock says 16 s, however good its clock is. A sandbox may forbid the question, as
// systemd's ProtectClock does, and other systems have no answer.
func WallError() (most time.Duration, ok bool) { return kernelError() }

// WallError is the function [WallError] for a Clock that reads the machine's own clocks, or the method
// WallError of its [Source]. It is false if there is none.
func (c *Clock) WallError() (most time.Duration, ok bool) {
	if c.source == nil {
		return WallError()
	}
	if s, ok := c.source.(interface{ WallError() (time.Duration, bool) }); ok {
		return s.WallError()
	}
	return 0, false
}

// askWall is the time between two questions of AwaitWall.
const askWall = 100 * time.Millisecond

// AwaitWall waits until the machine's wall clock may be off by no more than within, as [WallError] says, or
// until ctx ends. Make the Clock afterwards. The error wraps [ErrWall] and the cause of ctx. Where the kernel
// says nothing, AwaitWall returns nil at once.
func AwaitWall(ctx context.Context, within time.Duration) error {
	return awaitWall(ctx, within, kernelError)
}

func awaitWall(ctx context.Context, within time.Duration, ask func() (most time.Duration, ok bool)) error {
	for {
		most, ok := ask()
		if !ok || most <= within {
			return nil
		}
		select {
		case <-time.After(askWall):
		case <-ctx.Done():
			return fmt.Errorf("%w, off by up to %s by the kernel's word (limit %s): let NTP set it, or allow more: %w", ErrWall, most, within, context.Cause(ctx))
		}
	}
}
