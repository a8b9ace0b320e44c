package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

func TestFailed(t *testing.T) {
	cause := errors.New("broken pipe")
	err := engine.Failed(t.Context(), "pack", "swap", "node/7", "n", cause)
	assert.EqualError(t, err, `pack: swap node/7 in namespace "n": broken pipe`)
	assert.ErrorIs(t, err, cause)
	assert.EqualError(t, engine.Failed(t.Context(), "pack", "list", "", "", cause), "pack: list cells: broken pipe")
	assert.EqualError(t, engine.OpenFailed(t.Context(), "pack", fmt.Errorf("try:\n\t%w\r\n\tno\n\tno", stores.Permanent.New("not now"))), "pack: open: try: not now; no")
	assert.Less(t, len(engine.Failed(t.Context(), "pack", "read", strings.Repeat("k", 9999), "", cause).Error()), 200)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = engine.Failed(ended, "pack", "read", "k", "", cause)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, cause)
	err = engine.Failed(ended, "pack", "swap", "k", "", stores.ErrConflict)
	assert.NotErrorIs(t, err, context.Canceled, "a conflict is certain")
	assert.EqualError(t, engine.Failed(ended, "pack", "read", "k", "", context.Canceled), "pack: read k: context canceled")
	web := &url.Error{Op: "Get", URL: "http://h/", Err: context.Canceled}
	assert.EqualError(t, engine.Failed(ended, "pack", "read", "k", "", web), `pack: read k: no answer yet: Get "http://h/": context canceled`)
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	assert.ErrorIs(t, engine.Failed(late, "pack", "read", "k", "", cause), context.DeadlineExceeded)
}

func TestNextVersion(t *testing.T) {
	const last = 1<<63 - 1 // of all versions
	seen := map[uint64]bool{}
	for range 1000 {
		next, err := engine.NextVersion("k", last-1<<32, nil)
		assert.NoError(t, err)
		assert.True(t, next > last-1<<32 && next <= last, next)
		seen[next] = true
	}
	assert.Greater(t, len(seen), 990)
	_, err := engine.NextVersion("k", last-1<<32+1, nil)
	assert.ErrorIs(t, err, stores.ErrConflict)
}

func TestJoinDamaged(t *testing.T) {
	require.NoError(t, engine.JoinDamaged(nil))
	var errs []error
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		errs = append(errs, &stores.DamagedError{Key: key, Problem: "torn"})
	}
	err := engine.JoinDamaged(errs)
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorIs(t, err, errs[4])
	assert.EqualError(t, err, `"a" is damaged: torn; "b" is damaged: torn; "c" is damaged: torn; and 2 more`)
}

// An error that has no kind gets that of its type, and one that has keeps it.
func TestKind(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	refused := stores.Permanent.New("the password is wrong")
	failed := func(err error) error { return engine.Failed(t.Context(), "pack", "read", "k", "", err) }
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{failed(errors.New("gone")), stores.Unknown},
		{failed(syscall.ENOSPC), stores.Unknown},
		{failed(network), stores.Transient},
		{failed(&net.DNSError{}), stores.Transient},
		{failed(fmt.Errorf("read: %w", io.EOF)), stores.Transient},
		{failed(io.ErrUnexpectedEOF), stores.Transient},
		{failed(net.ErrClosed), stores.Transient},
		{failed(context.Canceled), stores.Transient},
		{failed(context.DeadlineExceeded), stores.Transient},
		{failed(&fs.PathError{Err: syscall.EACCES}), stores.Permanent},
		{engine.OpenFailed(t.Context(), "pack", fs.ErrPermission), stores.Permanent},
		{failed(refused), stores.Permanent},
		{failed(fmt.Errorf("%w: %w", network, refused)), stores.Permanent},
	} {
		assert.Equal(t, tt.want, stores.KindOf(tt.err), "%v", tt.err)
		assert.Equal(t, tt.want != stores.Unknown, errors.Is(tt.err, tt.want), "%v", tt.err)
	}
}
