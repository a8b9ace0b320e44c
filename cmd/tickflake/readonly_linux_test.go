package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
)

// The commands that read work on a read-only file system. The others fail at once, and not at
// the end of --timeout.
func TestReadOnlyFileSystem(t *testing.T) {
	state, mounted := t.TempDir(), t.TempDir()
	hold(t, state, lease.WithOwner("the holder"), lease.WithWindow(time.Hour))
	require.Zero(t, tickflake("generate", "--store", state).code)
	require.Zero(t, tickflake("sequence", "create", "orders", "--store", state).code)
	if err := syscall.Mount(state, mounted, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("mount --bind: %v; that takes root with CAP_SYS_ADMIN", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(mounted, syscall.MNT_DETACH)) })
	if err := syscall.Mount("", mounted, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("mount -o remount,ro: %v", err)
	}
	before := contents(t, state)
	r := tickflake("lease", "list", "--store", mounted)
	assert.Zero(t, r.code, r.err)
	assert.Regexp(t, `(?m)^0 +held +the holder`, r.out)
	assert.Regexp(t, `(?m)^1 +released`, r.out)
	r = tickflake("sequence", "list", "--store", mounted)
	assert.Zero(t, r.code, r.err)
	assert.Regexp(t, `(?m)^orders +ok`, r.out)
	r = tickflake("sequence", "show", "orders", "--store", mounted)
	assert.Zero(t, r.code, r.err)
	assert.Regexp(t, `(?m)^next +1$`, r.out)
	assert.Equal(t, before, contents(t, state))

	for _, args := range [][]string{
		{"generate", "--store", mounted, "--timeout", "1h"},
		{"lease", "release", "0", "--yes", "--store", mounted, "--timeout", "1h"},
		{"sequence", "create", "invoices", "--store", mounted, "--timeout", "1h"},
		{"sequence", "next", "orders", "--store", mounted, "--timeout", "1h"},
		{"sequence", "set", "orders", "--next", "9", "--yes", "--store", mounted, "--timeout", "1h"},
		{"sequence", "delete", "orders", "--yes", "--store", mounted, "--timeout", "1h"},
	} {
		r = tickflake(args...)
		assert.NotZero(t, r.code)
		assert.Regexp(t, "store refuses: (lock node/|swap sequence )", r.err)
		assert.Contains(t, r.err, "mount the file system for writing")
	}
	r = tickflake("generate", "--store", filepath.Join(mounted, "new"), "--timeout", "1h")
	assert.Contains(t, r.err, "read-only file system")
}
