package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
)

func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	if !errors.Is(err, stores.ErrConflict) && ctx.Err() != nil || errors.Is(err, zk.ErrNoServer) {
		err = s.dialed.add(err)
	}
	return stores.Failed(ctx, stores.At("zookeeper", s.servers()...), op, key, s.namespace, refused(err))
}

// refused makes the server's refusal wrap [stores.ErrRefused].
func refused(err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w", errCredentials, err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%w: %w", errEphemeral, err)
	}
	return err
}

var (
	errCredentials = stores.Refusal("the server refuses the user, the password or a right: fix the URL, or the access rights of the znodes")
	errEphemeral   = stores.Refusal("the znode of the namespace is ephemeral, so another program made it: use another namespace")
)

// dials keeps the error of the last attempt to connect. The driver does not return it,
// but tries again until the caller gives up.
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
