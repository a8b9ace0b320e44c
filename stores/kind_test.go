package stores_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/stores"
)

// Each error has one kind, and errors.Is says the same as KindOf.
func TestKindOf(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	refused := stores.Refused.New("the password is wrong")
	failed := func(err error) error { return stores.Failed(t.Context(), "pack", "read", "k", "", err) }
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{nil, stores.Unknown},
		{errors.New("gone"), stores.Unknown},
		{failed(errors.New("gone")), stores.Unknown},
		{failed(syscall.ENOSPC), stores.Unknown},
		{failed(network), stores.Passing},
		{failed(&net.DNSError{}), stores.Passing},
		{failed(fmt.Errorf("read: %w", io.EOF)), stores.Passing},
		{failed(io.ErrUnexpectedEOF), stores.Passing},
		{failed(net.ErrClosed), stores.Passing},
		{failed(context.Canceled), stores.Passing},
		{failed(context.DeadlineExceeded), stores.Passing},
		{stores.ErrConflict, stores.Passing},
		{stores.ErrLocked, stores.Passing},
		{stores.ErrOverloaded, stores.Passing},
		{failed(fmt.Errorf("%w: %w", stores.ErrOverloaded, fs.ErrPermission)), stores.Refused},
		{failed(&fs.PathError{Err: syscall.EACCES}), stores.Refused},
		{stores.OpenFailed(t.Context(), "pack", fs.ErrPermission), stores.Refused},
		{failed(refused), stores.Refused},
		{fmt.Errorf("%w: %w", network, refused), stores.Refused},
		{failed(fmt.Errorf("%w: %w", network, refused)), stores.Refused},
		{&stores.OptionError{Option: "WithNode", Err: network}, stores.Refused},
		{&stores.URLError{}, stores.Refused},
		{stores.ErrForgets, stores.Refused},
		{stores.ErrWentBack, stores.Loss},
		{stores.ErrDamaged, stores.Loss},
		{&stores.DamagedError{Err: refused}, stores.Loss},
	} {
		assert.Equal(t, tt.want, stores.KindOf(tt.err), "%v", tt.err)
		assert.Equal(t, tt.want != stores.Unknown, errors.Is(tt.err, tt.want), "%v", tt.err)
	}
	for kind, text := range []string{"unknown", "passing", "refused", "loss", "Kind(4)"} {
		assert.EqualError(t, stores.Kind(kind), text)
		assert.Equal(t, kind < 2, stores.Kind(kind).Retryable())
	}
}
