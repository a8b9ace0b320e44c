package redis_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// A server that refuses the connection is the cause that Open names, also after a second.
func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := stores.Open(ctx, "redis://127.0.0.1:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	s := start(t)
	admin := s.admin(t)
	do := func(t *testing.T, commands ...string) {
		for _, command := range commands {
			var args []any
			for word := range strings.FieldsSeq(command) {
				args = append(args, word)
			}
			require.NoError(t, admin.Do(within(t), args...).Err(), command)
		}
	}
	for name, test := range map[string]struct{ refuse, fix, want, advice string }{
		"password": {"ACL SETUSER NAME resetpass >other", "ACL SETUSER NAME >" + password, "WRONGPASS", "fix the URL"},
		"user":     {"ACL DELUSER NAME", "ACL SETUSER NAME on >" + password + " ~* +@all", "WRONGPASS", "fix the URL"},
		"command":  {"ACL SETUSER NAME -eval", "ACL SETUSER NAME +eval", "NOPERM", "allow the commands"},
		"in script": {"ACL SETUSER NAME -hget -hset -hdel -zadd", "ACL SETUSER NAME +@all",
			"can't run this command", "allow the commands"},
		"keys":  {"ACL SETUSER NAME resetkeys", "ACL SETUSER NAME ~*", "NOPERM", "fix the URL"},
		"type":  {"SET tickflake:{NAME} v", "DEL tickflake:{NAME}", "WRONGTYPE", "use another namespace"},
		"alone": {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY", "connect to the primary"},
	} {
		t.Run(name, func(t *testing.T) {
			own := strings.ReplaceAll(name, " ", "-")
			do(t, "ACL SETUSER "+own+" on >"+password+" ~* +@all")
			store := open(t, strings.Replace(s.url("namespace="+own), "//default", "//"+own, 1))
			cell, err := store.Read(within(t), "node/0000001")
			require.NoError(t, err)
			do(t, strings.ReplaceAll(test.refuse, "NAME", own))
			// A connection keeps the rights of its login until it ends.
			_ = admin.Do(within(t), "CLIENT", "KILL", "USER", own).Err()
			_, err1 := store.Read(within(t), "node/0000001")
			_, err2 := store.Swap(within(t), "node/0000001", cell.Version, []byte("v"))
			for _, err := range []error{err1, err2} {
				require.ErrorContains(t, err, test.want)
				assert.ErrorContains(t, err, test.advice)
				assert.Equal(t, stores.Refused, stores.KindOf(err))
				assert.NotContains(t, err.Error(), "s3cret")
			}
			do(t, strings.ReplaceAll(test.fix, "NAME", own))
			_, err = store.Swap(within(t), "node/0000001", cell.Version, []byte("v"))
			require.NoError(t, err)
		})
	}
	require.NoError(t, s.Kill())
	_, err := open(t, s.url()).Read(within(t), "node/0000001")
	assert.Equal(t, stores.Passing, stores.KindOf(err), err)
}
