package engine_test

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
	"github.com/tickflake/tickflake/stores/engine"
)

// An error that has no kind gets that of its type, and one that has keeps it.
func TestKind(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	refused := stores.Refused.New("the password is wrong")
	failed := func(err error) error { return engine.Failed(t.Context(), "pack", "read", "k", "", err) }
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{failed(errors.New("gone")), stores.Unknown},
		{failed(syscall.ENOSPC), stores.Unknown},
		{failed(network), stores.Passing},
		{failed(&net.DNSError{}), stores.Passing},
		{failed(fmt.Errorf("read: %w", io.EOF)), stores.Passing},
		{failed(io.ErrUnexpectedEOF), stores.Passing},
		{failed(net.ErrClosed), stores.Passing},
		{failed(context.Canceled), stores.Passing},
		{failed(context.DeadlineExceeded), stores.Passing},
		{failed(fmt.Errorf("%w: %w", stores.ErrOverloaded, fs.ErrPermission)), stores.Refused},
		{failed(&fs.PathError{Err: syscall.EACCES}), stores.Refused},
		{engine.OpenFailed(t.Context(), "pack", fs.ErrPermission), stores.Refused},
		{failed(refused), stores.Refused},
		{failed(fmt.Errorf("%w: %w", network, refused)), stores.Refused},
	} {
		assert.Equal(t, tt.want, stores.KindOf(tt.err), "%v", tt.err)
		assert.Equal(t, tt.want != stores.Unknown, errors.Is(tt.err, tt.want), "%v", tt.err)
	}
}
