package zookeeper

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

// sessionTime is how long a server that does not answer is waited for: the driver
// gives up a connection after two thirds of it. Nothing that is stored depends on the
// session.
const sessionTime = 6 * time.Second

var urlFormat = remote.Format{
	Plain: remote.Scheme{Name: "zk", Port: "2181"},
	TLS:   remote.Scheme{Name: "zks", Port: "2281"},
}

// Open returns a Store on the ZooKeeper servers at a URL,
//
//	zk://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/CHROOT][?namespace=NAME]
//
// or zks:// with TLS, with these options more: cacert=FILE for the certificate
// authorities to trust, in PEM, instead of the system's, and cert=FILE&key=FILE for
// the client's certificate. The port is 2181 (2281 with TLS), the namespace
// [lease.DefaultNamespace] and the znodes /CHROOT/NAMESPACE/NODE. With a user, the
// connection has its digest credentials, and znodes are made for this user alone;
// else they are open to all. Special characters of the password are percent-encoded.
//
// Only if the URL has a user does Open wait for a server, until ctx ends, to log in.
// Otherwise servers that cannot be reached are reported by the Store's methods. The
// error is a [*lease.URLError] or an [*OpenError]. Close the Store when it is no longer
// used.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	u, err := urlFormat.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if path := u.Path + "/"; strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.Contains(path, "/../") {
		return nil, u.Refuse("bad path after the host; want the chroot, like /a/b", nil)
	}
	config, err := u.TLSConfig()
	if err != nil {
		return nil, err
	}
	dialed := new(dials)
	dial := func(network, addr string, timeout time.Duration) (conn net.Conn, err error) {
		defer func() { dialed.note(err) }()
		if config == nil {
			return net.DialTimeout(network, addr, timeout)
		}
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, addr, config)
	}
	if (u.User == "") != (u.Password == "") {
		return nil, u.Refuse("a user without a password, or a password without a user", nil)
	}
	hosts := strings.Join(u.Hosts, ",")
	if err := ctx.Err(); err != nil {
		return nil, &OpenError{Hosts: hosts, Err: err}
	}
	conn, _, err := zk.Connect(u.Hosts, sessionTime, zk.WithDialer(dial), zk.WithHostProvider(&servers{}),
		zk.WithLogger(unspoken{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, &OpenError{Hosts: hosts, Err: err}
	}
	var acl []zk.ACL
	if u.User != "" {
		acl = zk.AuthACL(zk.PermAll)
		_, err := await(ctx, func() (struct{}, error) {
			return struct{}{}, conn.AddAuth("digest", []byte(u.User+":"+u.Password))
		})
		if err != nil {
			conn.Close()
			return nil, &OpenError{Hosts: hosts, Err: dialed.add(err)}
		}
	}
	s, err := newStore(conn, u.Path, u.Namespace, acl)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.servers, s.dialed = func() []string { return u.Hosts }, dialed
	s.close = func() error { conn.Close(); return nil }
	return s, nil
}

// OpenError reports servers that [Open] could not use.
type OpenError struct {
	Hosts string // as in the URL
	Err   error  // the driver's reason
}

func (e *OpenError) Error() string {
	return "zookeeper: open " + e.Hosts + ": " + e.Err.Error() + "; check that they are reachable and the credentials are right"
}

// Unwrap returns the driver's reason.
func (e *OpenError) Unwrap() error { return e.Err }
