package zookeeper

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// sessionTime is how long a server that does not answer is waited for: the driver
// gives up a connection after two thirds of it. Nothing that is stored depends on the
// session.
const sessionTime = 6 * time.Second

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
// error is a [*URLError], a [*lease.NamespaceError] or an [*OpenError]. Close the Store
// when it is no longer used.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	port := "2181"
	if strings.HasPrefix(strings.ToLower(rawURL), "zks://") {
		port = "2281"
	}
	t, err := parseURL(rawURL, port, []string{"zk", "zks"}, tlsOptions...)
	if err != nil {
		return nil, err
	}
	if strings.Contains(t.path+"/", "//") || strings.Contains(t.path+"/", "/./") || strings.Contains(t.path+"/", "/../") {
		return nil, badURL("bad path after the host; want the chroot, like /a/b")
	}
	dial := net.DialTimeout
	if t.scheme == "zks" {
		config, err := t.tlsConfig()
		if err != nil {
			return nil, err
		}
		dial = func(network, addr string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, addr, config)
		}
	} else if err := t.plain("zks"); err != nil {
		return nil, err
	}
	if (t.user == "") != (t.password == "") {
		return nil, badURL("a user without a password, or a password without a user")
	}
	if err := ctx.Err(); err != nil {
		return nil, &OpenError{Hosts: hostList(t), Err: err}
	}
	conn, _, err := zk.Connect(t.hosts, sessionTime, zk.WithDialer(dial), zk.WithHostProvider(&servers{}),
		zk.WithLogger(unspoken{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, &OpenError{Hosts: hostList(t), Err: err}
	}
	var acl []zk.ACL
	if t.user != "" {
		acl = zk.AuthACL(zk.PermAll)
		_, err := await(ctx, func() (struct{}, error) {
			return struct{}{}, conn.AddAuth("digest", []byte(t.user+":"+t.password))
		})
		if err != nil {
			conn.Close()
			return nil, &OpenError{Hosts: hostList(t), Err: err}
		}
	}
	s, err := newStore(conn, t.path, t.namespace, acl)
	if err != nil {
		conn.Close()
		return nil, err
	}
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
