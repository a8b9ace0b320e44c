package nats

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.creds")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.TestURLs(t, open, "nats://u:SECRET@h", map[string]string{
		"etcd://u:SECRET@h":                "store URL: unknown scheme, want nats:// or tls://",
		"nats://u:SECRET@h/path":           "a path after the host",
		"nats://u:SECRET@h?x=SECRET":       "there are namespace, replicas, creds, nkey, cacert, cert, key",
		"nats://u:SECRET@h?cert=/none":     "needs the scheme tls://",
		"tls://u:SECRET@h?cert=/none":      "options cert and key",
		"nats://u:SECRET@h?replicas=0":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=6":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=x":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?nkey=/none":     "option nkey",
		"nats://u:SECRET@h?creds=/none":    "option creds: nats: open /none: ",
		"nats://u:SECRET@h?creds=" + empty: "option creds: unable to extract key pair",
	})
	if _, err := New(nil, "x"); err == nil {
		t.Error("New took nil")
	}
	if _, err := New(nil, "a/b"); err == nil {
		t.Errorf("New with a bad namespace: %v", err)
	}
}

// hanging is a dialer that is refused at first, and then hangs while the context ends.
type hanging struct {
	dialed int
	end    func()
	back   chan struct{}
}

func (d *hanging) Dial(string, string) (net.Conn, error) {
	if d.dialed++; d.dialed > 1 {
		d.end()
		<-d.back
	}
	return nil, errors.New("connection refused")
}

// The error at the end of the context says what the last attempt met.
func TestConnectTellsTheReason(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := &hanging{end: cancel, back: make(chan struct{})}
	defer close(d.back)
	_, err := connect(ctx, &engine.URL{Scheme: "nats", Hosts: []string{"127.0.0.1:1"}}, []natsgo.Option{natsgo.SetCustomDialer(d)})
	if !errors.Is(err, natsgo.ErrNoServers) {
		t.Error(err)
	}
}

// A List of one first part asks for no others.
func TestFilter(t *testing.T) {
	for _, c := range [][3]string{
		{"node/", "node0", "node.>"}, {"node/5", "node/7", "node.>"}, {"a.b/", "a.b0", "a=b.>"}, {"node/", "node1", ">"},
		{"", "\x7f", ">"}, {"node", "node0", ">"}, {"/", "0", ">"}, {"A/", "A0", ">"},
	} {
		if got := filter(c[0], c[1]); got != c[2] {
			t.Errorf("filter(%q, %q) is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
