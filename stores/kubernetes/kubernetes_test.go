package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// kubeconfig makes a file that names a server, and returns a URL with it.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: SECRET}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", server)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("KUBECONFIG", file)
	return "k8s://default"
}

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	storetest.TestURLs(t, open, kubeconfig(t, "http://127.0.0.1:1"), map[string]string{
		"k8s://":                 "want k8s://NAMESPACE",
		"k8s://h:6443":           "want k8s://NAMESPACE",
		"k8s://u:SECRET@default": "credentials do not belong",
		"k8s://default?x=SECRET": "unknown option",
		"k8s://default/a b":      "bad prefix",
		"k8s://default/" + strings.Repeat("_", 70): "take 151 characters",
		"k8s://default?kubeconfig=/none":           "kubeconfig",
	})
	t.Setenv("KUBECONFIG", "/none")
	t.Setenv("HOME", t.TempDir())
	_, err := open(t.Context(), "k8s://default")
	assert.ErrorContains(t, err, "no cluster")
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

// A request is sent once, and its error has a kind. Package engine heeds Retry-After.
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
	url := kubeconfig(t, server.URL)
	for status = range reasons {
		s, err := open(t.Context(), url)
		require.NoError(t, err)
		_, err = s.Swap(t.Context(), "node/0000001", 0, []byte("value"))
		want := stores.Transient
		switch status {
		case http.StatusForbidden, http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusNotFound:
			want = stores.Permanent
		}
		assert.Equal(t, want, stores.KindOf(err), "%v", err)
		assert.NotContains(t, err.Error(), "SECRET")
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
	s, err := open(t.Context(), kubeconfig(t, server.URL))
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
