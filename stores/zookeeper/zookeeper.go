package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// sessionTime bounds the wait for a server that does not answer: the driver
// gives up a connection after two thirds of it, and impatient makes it give up a new
// connection after the same time. No stored data depends on the session.
const sessionTime = 6 * time.Second

// impatient is a connection to a server that may accept it and then hang. The driver would
// wait for the first answer ten times as long as for the others.
//
// The driver reads in one goroutine at a time.
type impatient struct {
	net.Conn
	answered bool
}

func (c *impatient) SetReadDeadline(t time.Time) error {
	if last := time.Now().Add(sessionTime * 2 / 3); !c.answered && t.After(last) {
		t = last
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *impatient) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.answered = c.answered || n > 0
	return n, err
}

var open = dial.Register(dial.Form{Name: "zookeeper", Plain: "zk:2181", Secure: "zks:2281", Path: true, Pair: true, One: true}, connect)

// connect opens a URL, as the package's doc describes it. If the URL has a user,
// it waits for a server, to log in; else it does not wait.
func connect(ctx context.Context, u *dial.Opening[revision]) error {
	if u.Path != "" && path.Clean(u.Path) != u.Path {
		return u.Refuse("bad path after the host; want the chroot, like /a/b", nil)
	}
	dialer := u.Dialer
	dialer.TLS = u.TLS
	dial := func(network, addr string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		conn, err := dialer.Dial(ctx, network, addr)
		return &impatient{Conn: conn}, err
	}
	conn, _, err := zk.Connect(u.Hosts, sessionTime, zk.WithDialer(dial), zk.WithHostProvider(&servers{}),
		zk.WithLogger(unspoken{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	s := u.Store
	s.Done = func() error { conn.Close(); return nil }
	acl := zk.WorldACL(zk.PermAll)
	if u.User != "" {
		acl = zk.AuthACL(zk.PermAll)
		// The driver returns an error when it has tried each server once.
		err = engine.Retry(ctx, func() error {
			_, err := engine.Wait(ctx, func() (struct{}, error) { return struct{}{}, conn.AddAuth("digest", []byte(u.User+":"+u.Password)) })
			return dialer.Because(refused(err))
		})
	}
	s.Texts, s.Reads = &texts{conn: conn, root: u.Path + "/" + u.Namespace, acl: acl}, 64
	s.Explain = func(ctx context.Context, err error) error {
		if !errors.Is(err, stores.ErrConflict) && ctx.Err() != nil || errors.Is(err, zk.ErrNoServer) {
			err = dialer.Because(err)
		}
		return refused(err)
	}
	return err
}

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
