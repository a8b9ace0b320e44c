package servers

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tickflake/tickflake/integration/program"
)

func init() { kinds[Kubernetes] = built("kubeapiserver", prepareKubernetes, versionOfKubernetes) }

// prepareKubernetes makes the user admin, who may do everything. His token is the server's password.
func prepareKubernetes(_ context.Context, s *Server, w Wanted) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	s.Password = rand.Text()
	s.URL = "k8s://default?kubeconfig=" + s.Kubeconfig(s.Addr, s.Password)
	accounts := filepath.Join(s.Dir, "accounts.pem")
	tokens := filepath.Join(s.Dir, "tokens.csv")
	text := s.Password + ",admin,1,system:masters\n"
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for file, content := range map[string][]byte{accounts: block, tokens: []byte(text)} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
	}
	return append([]string{
		"--bind-address=127.0.0.1", "--secure-port=" + s.Port(), "--cert-dir=" + s.Dir + "/certs",
		"--authorization-mode=RBAC", "--token-auth-file=" + tokens, "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://tickflake.example", "--service-account-key-file=" + accounts, "--service-account-signing-key-file=" + accounts,
	}, w.Settings...), nil
}

// Kubeconfig returns a file by which the user of a token reaches a Kubernetes server through an address.
func (s *Server) Kubeconfig(addr, token string) string {
	file := filepath.Join(s.Dir, fmt.Sprintf("%s-%x.yaml", addr, sha256.Sum256([]byte(token))))
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: "%s"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, addr, token)
	made := file + rand.Text() // others may read the file
	if err := errors.Join(os.WriteFile(made, []byte(text), 0o600), os.Rename(made, file)); err != nil {
		return err.Error() // the driver says that there is no such file
	}
	return file
}

// versionOfKubernetes is known once the server is ready.
func versionOfKubernetes(ctx context.Context, s *Server) (string, error) {
	_, err := program.Get(ctx, "https://"+s.Addr+"/readyz", s.Password)
	return "1.37", err
}
