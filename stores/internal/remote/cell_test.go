package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

func TestKey(t *testing.T) {
	for _, node := range []int64{0, 7, 1<<22 - 1} {
		assert.NoError(t, remote.CheckNode(node))
		back, ok := remote.NodeOf(remote.Key(node))
		assert.True(t, ok && back == node)
	}
	assert.Equal(t, "0000007", remote.Key(7))
	for _, node := range []int64{-1, 1 << 22, 1 << 62, -1 << 63} {
		assert.EqualError(t, remote.CheckNode(node), fmt.Sprintf("node number %d is not in [0, 4194304)", node))
	}
	for _, name := range []string{"", "7", "000007", "00000007", "4194304", "-000007", "confirm", strings.Repeat("9", 99)} {
		_, ok := remote.NodeOf(name)
		assert.False(t, ok, name)
	}
}

func TestCheckCell(t *testing.T) {
	for _, c := range []struct {
		node  int64
		value string
		want  string
	}{
		{-1, "", "node number is not from 0 to 2²²-1"},
		{1 << 22, "", "node number is not from 0 to 2²²-1"},
		{1, strings.Repeat("a", lease.MaxValue+1), "value has 1025 bytes, more than 1024"},
		{1, "\xff", "value is not UTF-8 text without U+0000"},
		{1, "a\x00b", "value is not UTF-8 text without U+0000"},
	} {
		cell := lease.Cell{Node: c.node, Value: []byte(c.value)}
		err := remote.CheckCell(cell, false)
		assert.EqualError(t, err, c.want)
		if strings.Contains(c.value, "\x00") {
			assert.NoError(t, remote.CheckCell(cell, true))
		} else {
			assert.EqualError(t, remote.CheckCell(cell, true), strings.TrimSuffix(c.want, " without U+0000"))
		}
	}
	assert.NoError(t, remote.CheckCell(lease.Cell{Node: 1<<22 - 1, Value: []byte("ä")}, false))
}

func TestFailed(t *testing.T) {
	conflict := remote.Failed("pack", "swap", "n", 7, lease.ErrConflict)
	assert.EqualError(t, conflict, `pack: swap cell 7 of namespace "n": `+lease.ErrConflict.Error())
	assert.ErrorIs(t, conflict, lease.ErrConflict)
	assert.EqualError(t, remote.Failed("pack", "list", "n", -1, errors.New("why")),
		`pack: list cells of namespace "n": why`)
}

func TestAt(t *testing.T) {
	assert.Equal(t, "pack", remote.At("pack"))
	assert.Equal(t, "pack", remote.At("pack", ""))
	assert.Equal(t, "pack at h:1", remote.At("pack", "h:1"))
	assert.Equal(t, "pack at h:1,[::1]:2,h:3", remote.At("pack", "http://h:1", "", "https://u:s3@cret@[::1]:2", "u:s3cret@h:3"))
}

func TestBecause(t *testing.T) {
	cause := errors.New("broken pipe")
	assert.Equal(t, cause, remote.Because(nil, cause))
	assert.Equal(t, lease.ErrConflict, remote.Because(context.Canceled, lease.ErrConflict))
	assert.Equal(t, context.Canceled, remote.Because(context.Canceled, context.Canceled))
	both := remote.Because(context.Canceled, cause)
	assert.ErrorIs(t, both, context.Canceled)
	assert.ErrorIs(t, both, cause)
}
