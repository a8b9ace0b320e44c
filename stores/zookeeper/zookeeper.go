package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// texts are the znodes of a namespace, for the skeleton. The driver sends each write at most once.
type texts struct {
	conn *zk.Conn
	root string // the znode above the cells
	acl  []zk.ACL
}

// revision is the data version of a znode, and that there is a znode. It goes back when an older state is
// restored, and begins again when the znode is deleted.
type revision struct {
	exists bool
	data   int32
}

// Get first writes to the znode of the namespace if it is to be linearizable. The driver's Sync would not
// do: the leader answers it alone, even a deposed leader that does not know yet.
func (t *texts) Get(ctx context.Context, key string, latest bool) (text engine.Text[revision], err error) {
	if latest {
		_, err = t.conn.Set(t.root, nil, -1)
	}
	if err == nil {
		err = ctx.Err() // if the caller has gone
	}
	if err == nil {
		var stat *zk.Stat
		if text.Bytes, stat, err = t.conn.Get(t.path(key)); err == nil {
			text.Found, text.Revision = true, revision{true, stat.Version}
		}
	}
	if errors.Is(err, zk.ErrNoNode) { // a majority agrees if there is no namespace
		err = nil
	}
	return text, err
}

// Put makes or writes a znode. The first in a namespace makes the znodes above.
func (t *texts) Put(ctx context.Context, key string, at revision, text []byte) (err error) {
	switch {
	case !at.exists:
		err = t.create(ctx, t.path(key), text)
	case at.data == -1: // to the driver, -1 means any version
		err = errors.New("the znode was written 2³²-1 times, and cannot be written any more")
	default:
		_, err = t.conn.Set(t.path(key), text, at.data)
	}
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w (%w)", stores.ErrConflict, err)
	}
	return err
}

// Scan asks for the names of all cells.
func (t *texts) Scan(_ context.Context, _, _ string, _ int, found func(string, []byte)) (more bool, err error) {
	names, _, err := t.conn.Children(t.root)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	for _, name := range names {
		found(strings.ReplaceAll(name, "+", "/"), nil)
	}
	return false, err
}

// create makes a znode and its missing parents. It makes a parent only when the server
// says that it is missing, because the user may have no right to make it.
func (t *texts) create(ctx context.Context, name string, value []byte) error {
	_, err := t.conn.Create(name, value, zk.FlagPersistent, t.acl)
	if !errors.Is(err, zk.ErrNoNode) || path.Dir(name) == "/" {
		return err
	}
	if err := t.create(ctx, path.Dir(name), nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create znode %s: %w", path.Dir(name), err)
	}
	if err := ctx.Err(); err != nil {
		return err // the caller has gone
	}
	if _, err = t.conn.Create(name, value, zk.FlagPersistent, t.acl); errors.Is(err, zk.ErrNoNode) {
		return errDeleted
	}
	return err
}

// errDeleted stands for a zk.ErrNoNode that is no conflict: Put would report one.
var errDeleted = errors.New("the znode above it was deleted as soon as it was made")

func (t *texts) path(key string) string { return t.root + "/" + strings.ReplaceAll(key, "/", "+") }

// unspoken discards the driver's log of lost connections. The errors of the methods report
// them.
type unspoken struct{}

func (unspoken) Printf(string, ...any) {}

// servers offers the servers of a URL in turn, as the driver's own HostProvider does,
// but by name. So a server that returns with another address is found, and TLS
// can check the name. The driver asks in one goroutine.
type servers struct {
	hosts []string
	next  int
	tried int // since the last round, or the last good one, which counts
}

func (h *servers) Init(hosts []string) error {
	h.hosts = hosts
	return nil
}

func (h *servers) Len() int { return len(h.hosts) }

func (h *servers) Next() (host string, round bool) {
	host, round = h.hosts[h.next], h.tried == len(h.hosts)
	h.next = (h.next + 1) % len(h.hosts)
	if round {
		h.tried = 0
	}
	h.tried++
	return host, round
}

func (h *servers) Connected() { h.tried = 1 }

// refused gives the server's refusal its kind.
func refused(err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w", errCredentials, err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%w: %w", errEphemeral, err)
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrClosing),
		errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved):
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

var (
	errCredentials = stores.Permanent.New("the server refuses the user, the password or a right: fix the URL, or the access rights of the znodes")
	errAway        = stores.Transient.New("no server answers: it starts, has no majority, or has maxClientCnxns connections of this host")
	errEphemeral   = stores.Permanent.New("the znode of the namespace is ephemeral, so another program made it: use another namespace")
)
