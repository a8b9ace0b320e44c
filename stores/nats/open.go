package nats

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

func init() {
	stores.Register("nats", open)
	stores.Register("tls", open)
}

// open connects to the servers of a URL, as the package's doc describes it. It waits for
// the connection, until ctx ends.
func open(ctx context.Context, rawURL string) (stores.Store, error) {
	u, err := engine.ParseURL(rawURL, "nats:4222", "tls:4222", "replicas", "creds", "nkey")
	if err != nil {
		return nil, err
	}
	if u.Path != "" {
		return nil, u.Refuse("a path after the host; want none, and the namespace as ?namespace=NAME", nil)
	}
	replicas := 0
	if text, ok := u.Options["replicas"]; ok {
		if replicas, err = strconv.Atoi(text); err != nil || replicas < 1 || replicas > 5 {
			return nil, u.Refuse("option replicas is not 1 to 5", nil)
		}
	}
	options, err := connectOptions(u)
	if err != nil {
		return nil, err
	}
	d := newDialer()
	stop := context.AfterFunc(ctx, func() { _ = d.Close() }) // which ends the attempt to connect
	options = append(options, natsgo.SetCustomDialer(d), natsgo.SkipHostLookup())
	servers := u.Scheme + "://" + strings.Join(u.Hosts, ","+u.Scheme+"://")
	var conn *natsgo.Conn
	err = engine.Retry(ctx, func() (err error) {
		if conn, err = natsgo.Connect(servers, options...); err != nil && ctx.Err() != nil {
			return ctx.Err() // which has closed the connections
		}
		return d.Because(refused(err))
	})
	if !stop() && err == nil {
		conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		_ = d.Close()
		return nil, engine.OpenFailed(ctx, engine.At("nats", u.Hosts...), err)
	}
	closeAll := func() error { conn.Close(); return d.Close() }
	var s *Store
	client, err := jetstream.New(conn)
	if err == nil {
		s, err = New(client, u.Namespace)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	s.replicas, s.dialer = replicas, &d.Dialer
	s.Done = closeAll
	return s, nil
}

// dialer is a natsgo.CustomDialer.
type dialer struct {
	dial.Dialer
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	open   context.Context // until Close
	end    func()
}

func newDialer() *dialer {
	open, end := context.WithCancel(context.Background())
	// The driver leaves a connection open that the server has refused, or has not answered.
	return &dialer{Dialer: dial.Dialer{Most: dial.MaxConns, One: true}, lookup: net.DefaultResolver.LookupNetIP, open: open, end: end}
}

// Dial tries the addresses of a host in turn. The driver would look for them without a context, and one Dial for all would
// wait for the first, as of a machine that is gone, until its time is over.
func (d *dialer) Dial(network, address string) (conn net.Conn, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(d.open, natsgo.DefaultTimeout)
	addresses, err := d.lookup(ctx, "ip", host)
	cancel()
	for _, a := range addresses {
		ctx, cancel := context.WithTimeout(d.open, natsgo.DefaultTimeout)
		conn, err = d.Dialer.Dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		cancel()
		if err == nil {
			break
		}
	}
	return conn, err
}

// Close ends calls of Dial, too.
func (d *dialer) Close() error {
	d.end()
	return d.Dialer.Close()
}

func connectOptions(u *engine.URL) ([]natsgo.Option, error) {
	options := []natsgo.Option{
		natsgo.Name("tickflake"),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(250 * time.Millisecond),
		// An operator may correct the password or the user.
		natsgo.IgnoreAuthErrorAbort(),
		// A connection whose other end has vanished is closed after 15 s.
		natsgo.PingInterval(5 * time.Second),
		natsgo.MaxPingsOutstanding(2),
		// Without a connection a write fails at once, so that no old write is sent after
		// the next connect.
		natsgo.ReconnectBufSize(-1),
		// Otherwise the driver prints errors that the methods return anyway.
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}),
	}
	switch {
	case u.Password != "":
		options = append(options, natsgo.UserInfo(u.User, u.Password))
	case u.User != "":
		options = append(options, natsgo.Token(u.User))
	}
	if file := u.Options["creds"]; file != "" {
		creds := natsgo.UserCredentials(file)
		if err := tryCredentials(creds); err != nil {
			return nil, u.Refuse("option creds", err)
		}
		options = append(options, creds)
	}
	if file := u.Options["nkey"]; file != "" {
		nkey, err := natsgo.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, u.Refuse("option nkey", err)
		}
		options = append(options, nkey)
	}
	config, err := dial.TLS(u)
	if config == nil || err != nil {
		return options, err
	}
	return append(options, natsgo.Secure(config)), nil
}

// tryCredentials reads the file, as the driver does at each connect.
func tryCredentials(creds natsgo.Option) error {
	var options natsgo.Options
	if err := creds(&options); err != nil {
		return err
	}
	if _, err := options.UserJWT(); err != nil {
		return err
	}
	_, err := options.SignatureCB([]byte("nonce"))
	return err
}
