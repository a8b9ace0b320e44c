package stores_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/stores"
)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "node/0000017", "seq/in-voices_2.x", "layout", strings.Repeat("k", stores.MaxKey), ".a", "a..b"} {
		assert.NoError(t, stores.CheckKey(key))
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "A", "ä", "a b", "a:b", "a\x00", "a+b", "a=b", strings.Repeat("k", stores.MaxKey+1)} {
		assert.Error(t, stores.CheckKey(key), "%q", key)
	}
}

func TestCheckValue(t *testing.T) {
	for _, value := range []string{"", "ä", strings.Repeat("v", stores.MaxValue)} {
		assert.NoError(t, stores.CheckValue([]byte(value)))
	}
	assert.EqualError(t, stores.CheckValue(make([]byte, stores.MaxValue+1)), "value of 1025 bytes, want at most 1024")
	for _, value := range []string{"\xff", "a\x00b"} {
		assert.EqualError(t, stores.CheckValue([]byte(value)), "value is not UTF-8 text without U+0000")
	}
}

func TestCheckNamespace(t *testing.T) {
	for _, name := range []string{"a", "A-b_9", "-", strings.Repeat("n", stores.MaxNamespace), stores.DefaultNamespace} {
		assert.NoError(t, stores.CheckNamespace(name))
	}
	for _, name := range []string{"", "a b", "a/b", "a.b", "ä", strings.Repeat("n", stores.MaxNamespace+1), strings.Repeat("ä", 5000)} {
		err := stores.CheckNamespace(name)
		assert.ErrorContains(t, err, "want 1 to 48 ASCII letters, digits, hyphens and underscores")
		assert.Less(t, len(err.Error()), 250)
	}
}

func TestURLError(t *testing.T) {
	cause := errors.New("no such file")
	err := &stores.URLError{Scheme: "etcd", Problem: "option cacert", Err: cause}
	assert.EqualError(t, err, "etcd store URL: option cacert: no such file")
	assert.ErrorIs(t, err, cause)
	assert.EqualError(t, &stores.URLError{Problem: "it is empty"}, "store URL: it is empty")
}

// Each error has one kind, and errors.Is says the same as KindOf.
func TestKindOf(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	refused := stores.Permanent.New("the password is wrong")
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{nil, stores.Unknown},
		{errors.New("gone"), stores.Unknown},
		{stores.ErrConflict, stores.Transient},
		{stores.ErrLocked, stores.Transient},
		{stores.ErrOverloaded, stores.Transient},
		{fmt.Errorf("%w: %w", network, refused), stores.Permanent},
		{&stores.OptionError{Option: "WithNode", Err: network}, stores.Permanent},
		{&stores.URLError{}, stores.Permanent},
		{stores.ErrForgets, stores.Permanent},
		{stores.ErrWentBack, stores.Loss},
		{stores.ErrDamaged, stores.Loss},
		{&stores.DamagedError{Err: refused}, stores.Loss},
	} {
		assert.Equal(t, tt.want, stores.KindOf(tt.err), "%v", tt.err)
		assert.Equal(t, tt.want != stores.Unknown, errors.Is(tt.err, tt.want), "%v", tt.err)
	}
	for kind, text := range []string{"unknown", "transient", "permanent", "loss", "Kind(4)"} {
		assert.EqualError(t, stores.Kind(kind), text)
		assert.Equal(t, kind < 2, stores.Kind(kind).Retryable())
	}
}
