package nats

import (
	"context"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = dial.Register(dial.Form{Name: "nats", Plain: "nats:4222", Secure: "tls:4222", One: true,
	Options: []string{"domain", "replicas", "creds"}}, connect)

// connect connects to the servers of a URL, as the package's doc describes it. It waits for
// the connection, until ctx ends. The driver leaves one open that the server has refused, or has not answered.
func connect(ctx context.Context, u *dial.Opening[uint64]) error {
	domain, replicas := u.Options["domain"], 0
	if strings.ContainsAny(domain, ".*> \t\r\n") {
		return u.Refuse("option domain is not the name of a JetStream domain, which has no dots, spaces, * and >", nil)
	}
	if text, ok := u.Options["replicas"]; ok {
		var err error
		if replicas, err = strconv.Atoi(text); err != nil || replicas < 1 || replicas > 5 {
			return u.Refuse("option replicas is not 1 to 5", nil)
		}
	}
	options, err := connectOptions(u.URL, u.TLS)
	if err != nil {
		return err
	}
	d := dialer{u.Dialer}
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
		return err
	}
	s := u.Store
	s.Done = func() error { conn.Close(); return nil }
	api := jetstream.DefaultAPIPrefix
	if domain != "" {
		api = "$JS." + domain + ".API."
	}
	client, err := jetstream.NewWithAPIPrefix(conn, strings.TrimSuffix(api, "."))
	if err != nil {
		return err
	}
	t := &texts{client: client, namespace: u.Namespace, domain: domain, api: api, replicas: replicas, dialer: u.Dialer, found: make(chan *bucket, 1)}
	t.found <- nil
	s.Texts, s.Reads, s.Ask = t, 64, t.ask
	s.Explain = func(_ context.Context, err error) error { return refused(err) }
	return nil
}

// dialer is a natsgo.CustomDialer.
type dialer struct{ *dial.Dialer }

// dialTime is that of one attempt for all addresses of a host, of which one may be of a machine that is gone.
const dialTime = 3 * natsgo.DefaultTimeout

// Dial looks for the addresses of a host itself: the driver would do so without an end.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	return d.Dialer.Dial(ctx, network, address)
}

func connectOptions(u *engine.URL, secure dial.Secure) ([]natsgo.Option, error) {
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
	if secure == nil {
		return options, nil
	}
	config, err := secure()
	if err != nil {
		return nil, err
	}
	config.Certificates, config.GetClientCertificate = nil, secure.Certificate
	return append(options, natsgo.Secure(config), natsgo.ClientTLSConfig(nil, func() (*x509.CertPool, error) {
		now, err := secure()
		if err != nil {
			return nil, err
		}
		return now.RootCAs, nil
	})), nil
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
