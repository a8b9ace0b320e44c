package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = engine.Register("k8s", []string{"server", "cacert", "token"}, connect)

const (
	// conns bounds the connections that are used, and most also counts those that the server
	// has not closed yet.
	conns = 4
	most  = 16

	// maxPrefix leaves room for the longest key that a fleet uses, that of a sequence, whose name has 64
	// characters, which may take two each. maxName is the longest name of an object.
	maxName   = 253
	maxPrefix = maxName - len("seq.") - 2*64
)

// account is where the files of a pod's service account are. A test replaces it.
var account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// connect opens a URL, as the package's doc describes it. It asks the server nothing yet.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	namespace, prefix := u.URL.Host, strings.Trim(u.URL.Path, "/")
	name := nameOf(strings.TrimLeft(prefix+"/"+u.Namespace, "/")) + "."
	switch {
	case u.URL.User != nil:
		return nil, u.Refuse("credentials do not belong in it; they come from the service account, or from the file token=FILE", nil)
	case namespace == "" || strings.ContainsAny(namespace, ":,."):
		return nil, u.Refuse("want k8s://NAMESPACE or k8s://NAMESPACE/PREFIX, with a namespace of Kubernetes", nil)
	case u.URL.RawQuery != "":
		return nil, u.Refuse("unknown option; there are server, cacert, token and namespace", nil)
	case prefix != "" && stores.CheckKey(prefix) != nil:
		return nil, u.Refuse("bad prefix; want lower-case letters, digits, hyphens, dots and underscores", nil)
	case len(name) > maxPrefix:
		return nil, u.Refuse(fmt.Sprintf("prefix and option namespace take %d characters of a name of Kubernetes, in which a capital letter, z, _ and . count twice; want at most %d", len(name), maxPrefix), nil)
	}
	address := u.Options["server"]
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); address == "" && host != "" { // in a pod
		address = "https://" + net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
		u.Options["cacert"] = cmp.Or(u.Options["cacert"], account+"ca.crt")
		u.Options["token"] = cmp.Or(u.Options["token"], account+"token")
	}
	server, err := url.Parse(address)
	switch {
	case address == "":
		return nil, u.Refuse("no server; run in a pod with a service account, or run kubectl proxy and add server=http://127.0.0.1:8001", nil)
	case err != nil || server.Host == "" || server.User != nil || server.Scheme != "https" && (server.Scheme != "http" || !isLoopback(server.Hostname())):
		return nil, u.Refuse("option server: want https://HOST, or http:// and a loopback address, as of kubectl proxy", nil)
	}
	if file := u.Options["token"]; file != "" {
		if _, err := os.ReadFile(file); err != nil {
			return nil, u.Refuse("option token", err)
		}
	}
	secure, err := dial.Trust(u)
	if err != nil {
		return nil, err
	}
	transport, err := dial.NewTransport(most, conns, secure)
	if err != nil {
		return nil, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a write goes out once
	s := &engine.Skeleton[revision]{
		Texts: &leases{client: &http.Client{Transport: transport, CheckRedirect: stay}, server: server, token: u.Options["token"],
			namespace: namespace, prefix: name},
		Namespace: u.Namespace, At: "k8s at " + server.Host,
		Explain: func(_ context.Context, err error) error { return refused(err) },
		Conns:   transport,
	}
	s.Own.Bucket = 30 * 24 * time.Hour // each cell is an object
	return s, nil
}

// isLoopback reports whether what is sent to a host stays on this one.
func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
