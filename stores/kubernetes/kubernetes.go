package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
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
)

// account is where the files of a pod's service account are. A test replaces it.
var account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// connect opens a URL, as the package's doc describes it. It asks the server nothing yet.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	namespace := u.URL.Host
	switch {
	case u.URL.User != nil:
		return nil, u.Refuse("credentials do not belong in it; they come from the service account, or from the file token=FILE", nil)
	case namespace == "" || strings.ContainsAny(namespace, ":,.") || u.URL.Path != "":
		return nil, u.Refuse("want k8s://NAMESPACE, with a namespace of Kubernetes", nil)
	case u.URL.RawQuery != "":
		return nil, u.Refuse("unknown option; there are server, cacert, token and namespace", nil)
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
			namespace: namespace, prefix: nameOf(u.Namespace) + "."},
		Namespace: u.Namespace, At: "k8s at " + server.Host,
		Explain: func(_ context.Context, err error) error { return refused(err) },
		Conns:   transport,
	}
	s.Own.Bucket = 30 * 24 * time.Hour // each cell is an object
	return s, nil
}

// isLoopback reports whether what is sent to a host stays on this one.
func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// annotation is the name of the annotation with the text of a cell.
const annotation = "tickflake.io/cell"

// label is the name of the label by which a List asks for the cells of a fleet, among all Leases of the namespace.
const label = "tickflake.io/fleet"

// revision is that of an object. Without its uid, a server makes a Lease anew that was deleted since, whatever
// the version that a PUT asks for.
type revision struct{ uid, version string }

// lease is an object of the kind Lease, in what the package reads and writes of it.
type lease struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid,omitempty"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// leases keeps texts as objects of the kind Lease, for the skeleton of package engine.
type leases struct {
	client    *http.Client
	server    *url.URL
	token     string // its file, which others renew; or ""
	namespace string // of Kubernetes
	prefix    string // of the objects' names
}

// Get reads one object. A request without a resourceVersion is answered by a majority of etcd.
func (l *leases) Get(ctx context.Context, key string, _ bool) (engine.Text[revision], error) {
	var found lease
	err := l.send(ctx, http.MethodGet, l.prefix+nameOf(key), nil, nil, &found)
	if err != nil {
		if codeOf(err) == http.StatusNotFound {
			err = nil
		}
		return engine.Text[revision]{Latest: true}, err
	}
	is := found.Metadata
	return engine.Text[revision]{Bytes: []byte(is.Annotations[annotation]), Found: true, Revision: revision{is.UID, is.ResourceVersion}, Latest: true}, nil
}

// Put writes one object, if it still has the revision, or makes it, if there is none.
func (l *leases) Put(ctx context.Context, key string, at revision, text []byte) error {
	put := lease{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	put.Metadata.Name, put.Metadata.UID, put.Metadata.ResourceVersion = l.prefix+nameOf(key), at.uid, at.version
	put.Metadata.Labels = map[string]string{label: l.fleet()}
	put.Metadata.Annotations = map[string]string{annotation: string(text)}
	method, name := http.MethodPost, ""
	if at != (revision{}) {
		method, name = http.MethodPut, put.Metadata.Name
	}
	err := l.send(ctx, method, name, nil, put, &put)
	if code := codeOf(err); code == http.StatusConflict || code == http.StatusNotFound && name != "" {
		return stores.ErrConflict
	}
	return err
}

// fleet is the value of the label: the prefix, or as much of it as a label can have.
func (l *leases) fleet() string {
	return strings.TrimRight(l.prefix[:min(len(l.prefix), 63)], ".-")
}

// Scan reads all objects of the fleet, since Kubernetes cannot list a range.
func (l *leases) Scan(ctx context.Context, _, _ string, _ int, found func(key string, text []byte)) (more bool, err error) {
	for next, again := "", true; again; again = next != "" {
		var list struct {
			Metadata struct{ Continue string }
			Items    []lease
		}
		if err := l.send(ctx, http.MethodGet, "", url.Values{"labelSelector": {label + "=" + l.fleet()}, "limit": {"500"}, "continue": {next}}, nil, &list); err != nil {
			return false, err
		}
		for _, item := range list.Items {
			name, ours := strings.CutPrefix(item.Metadata.Name, l.prefix)
			if key, ok := keyOf(name); ours && ok {
				found(key, []byte(item.Metadata.Annotations[annotation]))
			}
		}
		next = list.Metadata.Continue
	}
	return false, nil
}

// send sends a request once, and decodes the answer.
func (l *leases) send(ctx context.Context, method, name string, query url.Values, body, into any) error {
	at := l.server.JoinPath("apis/coordination.k8s.io/v1/namespaces", l.namespace, "leases", name)
	at.RawQuery = query.Encode()
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), &text)
	if err != nil {
		return err
	}
	request.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"tickflake"}}
	if l.token != "" {
		token, err := os.ReadFile(l.token)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode > 299 {
		said := &answerError{code: answer.StatusCode}
		_ = json.NewDecoder(answer.Body).Decode(said) // a proxy answers in another form
		return said
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// answerError is an answer with an error in it.
type answerError struct {
	code    int
	Message string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("%d %s", e.code, cmp.Or(e.Message, http.StatusText(e.code)))
}

// codeOf returns the status of an answer with an error, or 0.
func codeOf(err error) int {
	if answer, ok := errors.AsType[*answerError](err); ok {
		return answer.code
	}
	return 0
}

var (
	errRight   = stores.Permanent.New("the server refuses a right: bind the Role of the package doc to the service account or user")
	errLogin   = stores.Permanent.New("the server refuses the credentials: renew them, or check the service account")
	errInvalid = stores.Permanent.New("the server refuses the object, or has no such kind: it needs coordination.k8s.io/v1")
	errHome    = stores.Permanent.New("there is no such namespace of Kubernetes: make it, or fix the URL")
	errSlow    = stores.Transient.New("the server cannot answer now")
)

// refused gives the server's answer its kind. Its text names the right that is missing.
func refused(err error) error {
	var kind error
	switch code := codeOf(err); {
	case code == http.StatusForbidden:
		kind = errRight
	case code == http.StatusUnauthorized:
		kind = errLogin
	case code == http.StatusNotFound: // of a write; a Read knows it as no cell
		kind = errHome
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		kind = errInvalid
	case code == http.StatusTooManyRequests, code == http.StatusGone, code >= 500: // a List that has taken too long is gone
		kind = errSlow
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

var (
	toName  = strings.NewReplacer("_", "z0", ".", "z1", "z", "z3")
	toKey   = strings.NewReplacer("z0", "_", "z1", ".", "z2", "-", "z3", "z", ".", "/")
	capital = regexp.MustCompile("[A-Z]")
)

// nameOf returns a key or a namespace as a part of an object's name, whose 253 characters have room for both, also for that of a sequence: parts with dots
// between them, each of lower-case letters, digits and hyphens, with a letter or a digit at
// both ends. Slashes become dots. Every other character that may not stand where it stands becomes z
// and one more, so that no two keys have one name, and z is one of these.
func nameOf(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		part = capital.ReplaceAllStringFunc(toName.Replace(part), func(c string) string { return "z" + strings.ToLower(c) })
		if rest, ok := strings.CutPrefix(part, "-"); ok {
			part = "z2" + rest
		}
		if rest, ok := strings.CutSuffix(part, "-"); ok {
			part = rest + "z2"
		}
		parts[i] = part
	}
	return strings.Join(parts, ".")
}

// keyOf returns the key of a name that nameOf has made, or false for any other name.
func keyOf(name string) (key string, ok bool) {
	key = toKey.Replace(name)
	return key, stores.CheckKey(key) == nil && nameOf(key) == name
}
