package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// refused makes the server's refusal wrap [stores.Refused].
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
	errCredentials = stores.Refused.New("the server refuses the user, the password or a right: fix the URL, or the access rights of the znodes")
	errEphemeral   = stores.Refused.New("the znode of the namespace is ephemeral, so another program made it: use another namespace")
)

// withLast returns err with the error of the last attempt to connect, unless a connection was made
// since. The driver does not return it, but tries again until the caller gives up.
func withLast(dialer *dial.Dialer, err error) error {
	if last := dialer.LastError(); last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}
