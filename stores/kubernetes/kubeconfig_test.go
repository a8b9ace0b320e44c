//go:build unix

package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/stores"
)

// TestUsers logs in by each field of a kubeconfig, at a server that tells who has asked.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	status := http.StatusOK
	var who string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who = r.Header.Get("Authorization")
		if len(r.TLS.PeerCertificates) > 0 {
			who += " certificate of " + r.TLS.PeerCertificates[0].Subject.Organization[0]
		}
		w.WriteHeader(status)
		fmt.Fprint(w, `{"metadata":{"annotations":{"tickflake.io/cell":"5 old"}}}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} //nolint:gosec // a test
	server.StartTLS()
	defer server.Close()

	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	inline := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	given := func(status map[string]string) {
		text, err := json.Marshal(map[string]any{"kind": "ExecCredential", "status": status})
		if err != nil {
			t.Fatal(err)
		}
		write("given", string(text))
	}
	write("ca.crt", cert)
	write("tls.key", key)
	write("token", "in-file\n")
	write("login", "#!/bin/sh\necho $KUBERNETES_EXEC_INFO $1$OF >>$0.told\ncat ${0%/*}/given\n")
	exec := "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [a], env: [{name: OF, value: b}], provideClusterInfo: true}"
	opened := func(user string) (stores.Store, error) {
		write("config", fmt.Sprintf("clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]\nusers: [{name: u, user: {%s}}, {name: u, user: {token: second}}]\n"+
			"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", server.URL, user))
		return open(t.Context(), "k8s://default?kubeconfig="+filepath.Join(dir, "config"))
	}
	ask := func(s stores.Store) string {
		t.Helper()
		who = ""
		_, err := s.Read(t.Context(), "node/0000001")
		return fmt.Sprint(who, " ", stores.KindOf(err))
	}
	ok := " " + fmt.Sprint(stores.KindOf(nil))
	given(map[string]string{"token": "first", "expirationTimestamp": "2020-01-01T00:00:00Z"})
	for user, want := range map[string]string{
		"":                              "",
		"token: here, tokenFile: token": "Bearer here",
		"tokenFile: token":              "Bearer in-file",
		exec:                            "Bearer first",
		"token: here, " + exec:          "Bearer here",
		"client-certificate: ca.crt, client-key: tls.key":                                              " certificate of Acme Co",
		"client-certificate-data: " + inline(cert) + ", client-key-data: " + inline(key) + ", " + exec: " certificate of Acme Co",
	} {
		s, err := opened(user)
		if err != nil {
			t.Fatalf("{%s}: %v", user, err)
		}
		if got := ask(s); got != want+ok {
			t.Errorf("{%.40s}: %q, want %q", user, got, want+ok)
		}
		_ = s.Close()
	}
	s, err := opened("token: here")
	if err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections()
	other, _, _ := strings.Cut(cert, "END")
	write("ca.crt", other)
	if got := ask(s); !strings.HasPrefix(got, " ") {
		t.Errorf("without the server's certificate: %q", got)
	}
	write("ca.crt", cert) // it is renewed
	if got := ask(s); got != "Bearer here"+ok {
		t.Errorf("with it again: %q", got)
	}
	_ = s.Close()
	if s, err := opened("as: somebody"); err == nil || !strings.Contains(err.Error(), "user") {
		t.Errorf("a field that the package does not know: %v, %v", s, err)
	}
	told, err := os.ReadFile(filepath.Join(dir, "login.told"))
	once, _, _ := strings.Cut(string(told), "\n")
	if want := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"cluster":{"server":"` + server.URL +
		`","certificate-authority-data":"` + inline(cert) + `"},"interactive":false}} ab`; once != want {
		t.Errorf("%v: the program is told %s, want %s", err, once, want)
	}

	// A program is asked again when its credentials have ended, and when the server refuses them.
	s, err = opened(exec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test has ended
	first := ask(s)
	given(map[string]string{"token": "second"})
	second := ask(s)
	given(map[string]string{"clientCertificateData": cert, "clientKeyData": key})
	status = http.StatusUnauthorized
	kept := ask(s)
	status = http.StatusOK
	if got, want := []string{first, second, kept, ask(s)}, []string{"Bearer first" + ok, "Bearer second" + ok, "Bearer second permanent", " certificate of Acme Co" + ok}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	write("login", "#!/bin/sh\necho not logged in >&2\nexit 1\n")
	if s, err = opened(exec); err == nil {
		_, err = s.Read(t.Context(), "node/0000001")
		_ = s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "program login: exit status 1: not logged in") {
		t.Errorf("a program that fails: %v", err)
	}
	if _, err := (&user{Exec: &plugin{Command: filepath.Join(dir, "login")}}).certificate(t.Context(), nil); err == nil {
		t.Error("a certificate of a program that fails")
	}
}

// TestContexts finds the cluster and the user where Kubernetes' own tools find them.
func TestContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for file, text := range map[string]string{
		a: "current-context: two\nclusters: [{name: c, cluster: {server: https://one}}]\ncontexts: [{name: one, context: {cluster: c}}]",
		b: "current-context: one\nclusters: [{name: c, cluster: {server: https://no}}, {name: d, cluster: {server: https://two}}]\ncontexts: [{name: two, context: {cluster: d}}, {name: odd, context: {cluster: e}}]",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := strings.Join([]string{a, filepath.Join(dir, "none"), b}, string(filepath.ListSeparator))
	for _, tt := range []struct{ env, host, file, context, want string }{
		{list, "10.0.0.1", "", "", "https://two"},
		{list, "", "", "one", "https://one"},
		{list, "", b, "two", "https://two"},
		{list, "", "", "odd", "no such cluster"},
		{list, "", "", "three", "no such context"},
		{list, "", filepath.Join(dir, "none"), "", "no such file"},
		{"", "10.0.0.1", "", "", "https://10.0.0.1:443"},
		{"", "", "", "", "no cluster"},
	} {
		t.Setenv("KUBECONFIG", tt.env)
		t.Setenv("KUBERNETES_SERVICE_HOST", tt.host)
		t.Setenv("KUBERNETES_SERVICE_PORT", "443")
		c, _, err := find(tt.file, tt.context)
		if got := fmt.Sprint(c, err); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
