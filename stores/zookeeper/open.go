package zookeeper

import (
	"context"
	"errors"
	"net"
	"path"
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
