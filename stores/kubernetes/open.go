package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = engine.Register("k8s", []string{"kubeconfig", "context"}, connect)

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

// connect opens a URL, as the package's doc describes it. It asks the server nothing yet.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	namespace, prefix := u.URL.Host, strings.Trim(u.URL.Path, "/")
	name := nameOf(strings.TrimLeft(prefix+"/"+u.Namespace, "/")) + "."
	switch {
	case u.URL.User != nil:
		return nil, u.Refuse("credentials do not belong in it; they come from the service account or the kubeconfig", nil)
	case namespace == "" || strings.ContainsAny(namespace, ":,."):
		return nil, u.Refuse("want k8s://NAMESPACE or k8s://NAMESPACE/PREFIX, with a namespace of Kubernetes", nil)
	case u.URL.RawQuery != "":
		return nil, u.Refuse("unknown option; there are kubeconfig, context and namespace", nil)
	case prefix != "" && stores.CheckKey(prefix) != nil:
		return nil, u.Refuse("bad prefix; want lower-case letters, digits, hyphens, dots and underscores", nil)
	case len(name) > maxPrefix:
		return nil, u.Refuse(fmt.Sprintf("prefix and option namespace take %d characters of a name of Kubernetes, in which a capital letter, z, _ and . count twice; want at most %d", len(name), maxPrefix), nil)
	}
	found, user, err := find(u.Options["kubeconfig"], u.Options["context"])
	if errors.Is(err, errNoCluster) {
		return nil, u.Refuse(err.Error(), nil)
	}
	var server, proxy *url.URL
	var base *dial.Transport
	if err == nil {
		server, proxy, err = found.addresses()
	}
	if err == nil {
		secure := func() (*tls.Config, error) { return found.secure(user) }
		base, err = dial.NewTransport(&dial.Dialer{Most: most}, conns, secure, cmp.Or(found.ServerName, server.Hostname()))
	}
	if err != nil {
		return nil, u.Refuse("kubeconfig", engine.Withhold(err, err.Error(), "no such context", "context", "cluster", "user", "server", "certificate", "proxy-url", "exec"))
	}
	if proxy != nil {
		base.Proxy = http.ProxyURL(proxy)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a write goes out once
	client := &http.Client{Transport: base, CheckRedirect: stay}
	s := &engine.Skeleton[revision]{
		Texts: &leases{client: client, server: server, cluster: found, user: user, namespace: namespace, prefix: name}, Namespace: u.Namespace,
		At:      "k8s at " + server.Host,
		Explain: func(_ context.Context, err error) error { return refused(err) },
		Conns:   base,
	}
	s.Own.Bucket = 30 * 24 * time.Hour // each cell is an object
	return s, nil
}
