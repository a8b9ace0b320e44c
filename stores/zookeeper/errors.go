package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	err = remote.Because(ctx.Err(), err)
	if ctx.Err() != nil || errors.Is(err, zk.ErrNoServer) {
		err = s.dialed.add(err)
	}
	return remote.Failed(remote.At("zookeeper", s.servers()...), op, s.namespace, node, err)
}

// dials keeps how the last attempt to connect has failed, which the driver keeps to
// itself: it goes on trying until the caller has waited for long enough.
type dials struct{ failure atomic.Pointer[error] }

// note notes the outcome of an attempt.
func (d *dials) note(err error) {
	if err == nil {
		d.failure.Store(nil)
		return
	}
	d.failure.Store(&err)
}

// add returns err with the last failure, if no connection was made since.
func (d *dials) add(err error) error {
	if failure := d.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", err, *failure)
	}
	return err
}
