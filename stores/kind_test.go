package stores_test

import (
	"errors"
	"fmt"
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
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{nil, stores.Unknown},
		{errors.New("gone"), stores.Unknown},
		{stores.ErrConflict, stores.Passing},
		{stores.ErrLocked, stores.Passing},
		{stores.ErrOverloaded, stores.Passing},
		{fmt.Errorf("%w: %w", network, refused), stores.Refused},
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
