package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/lease"
)

// serveFile is the manifest of "tickflake serve".
const serveFile = "serve.yaml"

// certificate writes what cert-manager would: a certificate for the address, and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return pool
}

// The server runs as the manifest says: it takes the arguments and the environment, answers
// the probes at the pod's address, serves clients with a token, and ends well.
func TestServePodRuns(t *testing.T) {
	m := load(t, serveFile)
	c := m.container()
	binary := exampletest.Build(t, "github.com/tickflake/tickflake/cmd/tickflake")
	made, err := exec.Command(binary, "serve", "token").Output()
	require.NoError(t, err)
	token, hash := strings.Fields(string(made))[1], strings.Fields(string(made))[3]

	// The files and ports of the pod are elsewhere.
	root, store := t.TempDir(), t.TempDir()
	for _, mount := range c.VolumeMounts {
		require.NoError(t, os.MkdirAll(filepath.Join(root, mount.MountPath), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "/etc/tickflake/config/serve.yaml"), fmt.Appendf(nil, "clients:\n  - {name: shop, token-hash: %s}\n", hash), 0o600))
	pool := certificate(t, filepath.Join(root, "/etc/tickflake/tls"))
	var args []string
	for _, arg := range c.Args {
		arg = regexp.MustCompile(`^--(resp|http|grpc|probes)=:\d+$`).ReplaceAllString(arg, "--$1=:0")
		arg = strings.Replace(arg, "=/etc/", "="+root+"/etc/", 1)
		if strings.HasPrefix(arg, "--unready-for=") {
			arg = "--unready-for=0s"
		}
		args = append(args, arg)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{"TICKFLAKE_PORT=tcp://10.0.0.1:443"} // as a service of that name would set it
	for name, value := range environment(t, c, "tickflake-1", "file:"+store) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	p, err := exampletest.StartCommand(t, cmd)
	require.NoError(t, err)

	ports := p.Await(`"msg":"serving".*"http":"\[::\]:(\d+)".*"probes":"\[::\]:(\d+)"`)
	service, kubelet := "https://127.0.0.1:"+ports[1], "http://127.0.0.1:"+ports[2]
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	do := func(method, url, token string) (int, string, error) {
		req, err := http.NewRequestWithContext(context.Background(), method, url, nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close() //nolint:errcheck // it was only read
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}
	for name, probe := range probes(m) {
		assert.Equal(t, "probes", probe.HTTPGet.Port.StrVal, name)
		status, body, err := do(http.MethodGet, kubelet+probe.HTTPGet.Path, "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status, "%s: %s", name, body)
	}
	status, body, err := do(http.MethodPost, service+"/v1/ids", token)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Regexp(t, `"\d{15,19}"`, body)
	status, _, err = do(http.MethodPost, service+"/v1/ids", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Equal(t, lease.Held, inspect(t, store).State)
	client.CloseIdleConnections()

	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.Wait())
	assert.Equal(t, lease.Released, inspect(t, store).State)
	assert.NotContains(t, p.Stdout()+p.Stderr(), token)
}
