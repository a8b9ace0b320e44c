package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

func init() { stores.Register("k8s", open) }

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

// open opens a URL, as the package's doc describes it. It asks the server nothing yet.
func open(_ context.Context, rawURL string) (stores.Store, error) {
	u, err := engine.ParseDriverURL(rawURL, []string{"k8s"}, "kubeconfig", "context")
	if err != nil {
		return nil, err
	}
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
	config, err := configOf(u)
	if err != nil {
		return nil, err
	}
	client, closeAll, err := clientOf(config)
	if err != nil {
		return nil, u.Refuse("kubeconfig", err)
	}
	return &Store{engine.Skeleton[revision]{
		Texts: &leases{client: client, namespace: namespace, prefix: name}, Namespace: u.Namespace,
		At:      func() string { return engine.At("k8s", config.Host) },
		Explain: func(_ context.Context, err error) error { return refused(err) },
		Done:    closeAll,
	}}, nil
}

// configOf finds the server and the credentials: the kubeconfig of the URL, of KUBECONFIG
// or of the home directory, or those of the pod.
func configOf(u *engine.URL) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = u.Options["kubeconfig"]
	overrides := &clientcmd.ConfigOverrides{CurrentContext: u.Options["context"]}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), errors.Is(err, rest.ErrNotInCluster):
		err = u.Refuse("no cluster; run in a pod with a service account, or name a kubeconfig by KUBECONFIG or kubeconfig=FILE", nil)
	case err != nil:
		err = u.Refuse("kubeconfig", engine.Withhold(err, err.Error(), "context", "cluster", "server", "certificate"))
	}
	return config, err
}

// scheme has the one kind of objects that the package uses, and the server's errors. That of client-go
// has every kind of Kubernetes, in 50 more packages.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(coordination.AddToScheme(s)) // fails only for kinds that clash
	meta.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// clientOf returns a client of the API of leases with connections of its own.
func clientOf(config *rest.Config) (client rest.Interface, closeAll func() error, err error) {
	config.GroupVersion, config.APIPath = &coordination.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // no limiter: what to send is little, and must not wait
	config.NextProtos = []string{"http/1.1"}
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	trusted, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, nil, err
	}
	base := dial.NewTransport(&dial.Dialer{Most: most}, conns, trusted)
	if settings.Proxy != nil {
		base.Proxy = settings.Proxy
	}
	wrapped, err := transport.HTTPWrappersForConfig(settings, base)
	if err != nil {
		return nil, nil, err
	}
	client, err = rest.RESTClientForConfigAndClient(config, &http.Client{Transport: wrapped})
	return client, base.Close, err
}
