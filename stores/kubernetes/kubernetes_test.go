package kubernetes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// at returns a URL for a server on this host.
func at(server *httptest.Server) string { return "k8s://default?server=" + server.URL }

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	storetest.TestURLs(t, open, "", map[string]string{
		"k8s://":                 "want k8s://NAMESPACE",
		"k8s://h:6443":           "want k8s://NAMESPACE",
		"k8s://u:SECRET@default": "credentials do not belong",
		"k8s://default?x=SECRET": "unknown option",
		"k8s://default/p":        "want k8s://NAMESPACE",
		"k8s://default":          "no server",
		"k8s://default?server=h": "option server",
		"k8s://default?server=http://10.0.0.1:8001":    "a loopback address",
		"k8s://default?server=https://u:SECRET%40h":    "option server",
		"k8s://default?server=https://h&cacert=/none":  "option cacert",
		"k8s://default?server=https://h&token=/none":   "option token",
		"k8s://default?server=https://h&namespace=a/b": `namespace "a/b"`,
	})
}

// In a pod, the server and the credentials are those of its service account, whose files are read anew.
func TestServiceAccount(t *testing.T) {
	var came string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	before := account
	defer func() { account = before }()
	account = t.TempDir() + "/"
	write := func(name, text string) { require.NoError(t, os.WriteFile(account+name, []byte(text), 0o600)) }
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	write("token", "of the start")
	s, err := open(t.Context(), "k8s://default")
	require.NoError(t, err)
	defer s.Close()
	for _, token := range []string{"first", "second"} {
		write("token", token+"\n")
		_, err = s.Read(t.Context(), "node/0000001")
		require.NoError(t, err)
		assert.Equal(t, "Bearer "+token, came)
	}
}

// subdomain is what Kubernetes takes as a name (RFC 1123), but for its length.
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Each key has a name of its own that Kubernetes takes, and comes back from it.
func FuzzNames(f *testing.F) {
	for _, key := range []string{"node/0000017", "seq/orders.2027", "layout", "seq/-a-b-/_.z/zz", "a./.b", "z1", strings.Repeat("z", 50)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if back, ok := keyOf(key); ok { // key as a name
			assert.Equal(t, key, nameOf(back))
		}
		if stores.CheckKey(key) != nil {
			return
		}
		name := nameOf(key)
		back, ok := keyOf(name)
		assert.True(t, ok && back == key, "key %q: the name %q is that of %q", key, name, back)
		assert.Regexp(t, subdomain, name, "Kubernetes refuses the name of key %q", key)
	})
}

// A request is sent once, and its error has a kind.
func TestAnswers(t *testing.T) {
	asked := make(chan string, 100)
	var status int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"m","code":%d}`, reasons[status], status)
	}))
	defer server.Close()
	for status = range reasons {
		s, err := open(t.Context(), at(server))
		require.NoError(t, err)
		_, err = s.Swap(t.Context(), "node/0000001", 0, []byte("value"))
		want := stores.Transient
		switch status {
		case http.StatusForbidden, http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusNotFound:
			want = stores.Permanent
		}
		assert.Equal(t, want, stores.KindOf(err), "%v", err)
		require.Len(t, asked, 1)
		<-asked
		require.NoError(t, s.Close())
	}
}

// A write names the very object that was read: another of the name may have taken its place. It has the label that a List asks for.
func TestUID(t *testing.T) {
	var put lease
	var asked url.Values
	is := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"uid":"u","resourceVersion":"7","annotations":{"tickflake.io/cell":"5 old"}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		asked = r.URL.Query()
		if r.Method == http.MethodPut {
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&put))
		}
		fmt.Fprint(w, is)
	}))
	defer server.Close()
	s, err := open(t.Context(), at(server))
	require.NoError(t, err)
	defer s.Close()
	_, err = s.List(t.Context(), "", "z", 1)
	require.NoError(t, err)
	assert.Equal(t, "tickflake.io/fleet=tickflake", asked.Get("labelSelector"))
	_, err = s.Swap(t.Context(), "node/0000001", 5, []byte("new"))
	require.NoError(t, err)
	assert.Equal(t, "tickflake", put.Metadata.Labels["tickflake.io/fleet"])
	assert.Equal(t, "u", put.Metadata.UID)
	assert.Equal(t, "7", put.Metadata.ResourceVersion)
}

var reasons = map[int]string{
	http.StatusForbidden:           "Forbidden",
	http.StatusNotFound:            "NotFound",
	http.StatusGone:                "Expired",
	http.StatusUnauthorized:        "Unauthorized",
	http.StatusUnprocessableEntity: "Invalid",
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusServiceUnavailable:  "ServiceUnavailable",
	http.StatusGatewayTimeout:      "Timeout",
	http.StatusInternalServerError: "InternalError",
}
