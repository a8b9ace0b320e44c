package servers

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/integration/program"
)

func init() { kinds[Kubernetes] = built("kubeapiserver", prepareKubernetes, versionOfKubernetes) }

// prepareKubernetes makes the user admin, who may do everything. His token is the server's password.
func prepareKubernetes(_ context.Context, s *Server, w Wanted) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	// The names are those by which tests reach it.
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"*.hangs.test"}}
	certificate, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		return nil, err
	}
	s.Password = rand.Text()
	cert, secret, tokens := filepath.Join(s.Dir, "server.pem"), filepath.Join(s.Dir, "server.key"), filepath.Join(s.Dir, "tokens.csv")
	for file, content := range map[string][]byte{
		cert:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		secret: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		tokens: []byte(s.Password + ",admin,1,system:masters\n"),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
	}
	s.URL = "k8s://default?server=https://" + s.Addr + "&cacert=" + cert + "&token=" + s.Token("admin", s.Password)
	return append([]string{
		"--bind-address=127.0.0.1", "--secure-port=" + s.Port(), "--tls-cert-file=" + cert, "--tls-private-key-file=" + secret, "--cert-dir=" + s.Dir + "/certs",
		"--authorization-mode=RBAC", "--token-auth-file=" + tokens, "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://tickflake.example", "--service-account-key-file=" + secret, "--service-account-signing-key-file=" + secret,
	}, w.Settings...), nil
}

// Token returns a file with the token of a user of Kubernetes.
func (s *Server) Token(user, token string) string {
	file := filepath.Join(s.Dir, user+".token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return err.Error() // there is no such file
	}
	return file
}

// versionOfKubernetes is known once the server is ready.
func versionOfKubernetes(ctx context.Context, s *Server) (string, error) {
	_, err := program.Get(ctx, "https://"+s.Addr+"/readyz", s.Password)
	return "1.37", err
}
