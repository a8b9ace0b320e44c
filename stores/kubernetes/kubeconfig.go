package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// file is what the package heeds of a kubeconfig.
type file struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster cluster
	}
	Users []struct {
		Name string
		User user
	}
}

// cluster is a server of Kubernetes.
type cluster struct {
	Server        string `yaml:"server" json:"server"`
	ServerName    string `yaml:"tls-server-name" json:"tls-server-name,omitempty"`
	Insecure      bool   `yaml:"insecure-skip-tls-verify" json:"insecure-skip-tls-verify,omitempty"`
	Authority     string `yaml:"certificate-authority" json:"-"`
	AuthorityData string `yaml:"certificate-authority-data" json:"certificate-authority-data,omitempty"`
	Proxy         string `yaml:"proxy-url" json:"proxy-url,omitempty"`
}

// user says how the package logs in. It reads a file anew whenever it is asked, since others renew it.
type user struct {
	Token           string
	TokenFile       string `yaml:"tokenFile"`
	Certificate     string `yaml:"client-certificate"`
	CertificateData string `yaml:"client-certificate-data"`
	Key             string `yaml:"client-key"`
	KeyData         string `yaml:"client-key-data"`
	Exec            *plugin

	// Others are fields that the package does not know: without them it would be another user.
	Others map[string]any `yaml:",inline"`
}

// pod is where the files of a service account are.
const pod = "/var/run/secrets/kubernetes.io/serviceaccount/"

var errNoCluster = errors.New("no cluster; run in a pod with a service account, or name a kubeconfig by KUBECONFIG or kubeconfig=FILE")

// find returns the cluster and the user of a context: in one file, else in the files of KUBECONFIG, else
// in ~/.kube/config, else those of the pod. Of two entries with one name, the first counts.
func find(path, context string) (*cluster, *user, error) {
	files := filepath.SplitList(os.Getenv("KUBECONFIG"))
	if home, err := os.UserHomeDir(); len(files) == 0 && err == nil {
		files = []string{filepath.Join(home, ".kube", "config")}
	}
	if path != "" {
		files = []string{path}
	}
	var all file
	for _, name := range files {
		one, err := load(name)
		if err != nil && (path != "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, err
		}
		if all.Current == "" {
			all.Current = one.Current
		}
		all.Contexts = append(all.Contexts, one.Contexts...)
		all.Clusters = append(all.Clusters, one.Clusters...)
		all.Users = append(all.Users, one.Users...)
	}
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	switch {
	case context == "" && all.Current == "" && host != "":
		server := "https://" + net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
		return &cluster{Server: server, Authority: pod + "ca.crt"}, &user{TokenFile: pod + "token"}, nil
	case context == "" && all.Current == "":
		return nil, nil, errNoCluster
	case context == "":
		context = all.Current
	}
	return all.choose(context)
}

func (f *file) choose(context string) (*cluster, *user, error) {
	for _, c := range f.Contexts {
		if c.Name != context {
			continue
		}
		user := new(user) // nobody, if the context names none
		for i := range slices.Backward(f.Users) {
			if f.Users[i].Name == c.Context.User {
				user = &f.Users[i].User
			}
		}
		if len(user.Others) > 0 {
			return nil, nil, fmt.Errorf("the user has fields that this package does not know: %s", slices.Sorted(maps.Keys(user.Others)))
		}
		if user.Token+user.TokenFile+user.Certificate+user.CertificateData != "" {
			user.Exec = nil // what stands in the file goes first
		}
		for i := range f.Clusters {
			if f.Clusters[i].Name == c.Context.Cluster {
				return &f.Clusters[i].Cluster, user, nil
			}
		}
		return nil, nil, errors.New("no such cluster as the context names")
	}
	return nil, nil, errors.New("no such context")
}

// load reads a file. The paths in it are relative to its directory.
func load(path string) (f file, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &f)
	}
	var paths []*string
	for i := range f.Clusters {
		paths = append(paths, &f.Clusters[i].Cluster.Authority)
	}
	for i := range f.Users {
		u := &f.Users[i].User
		delete(u.Others, "extensions")
		paths = append(paths, &u.TokenFile, &u.Certificate, &u.Key)
		if u.Exec != nil && strings.ContainsRune(u.Exec.Command, filepath.Separator) {
			paths = append(paths, &u.Exec.Command)
		}
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return f, err
}

// content returns what stands in the file itself, in base64, or in another file.
func content(data, file string) ([]byte, error) {
	if data != "" || file == "" {
		return base64.StdEncoding.DecodeString(data)
	}
	return os.ReadFile(file)
}

// secure returns the configuration of a handshake.
func (c *cluster) secure(u *user) (*tls.Config, error) {
	authority, err := content(c.AuthorityData, c.Authority)
	if err != nil {
		return nil, fmt.Errorf("certificate-authority: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.Insecure} //nolint:gosec // the user says so
	if len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("certificate-authority: no certificate in PEM")
		}
	}
	if u.Certificate != "" || u.CertificateData != "" || u.Exec != nil {
		config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return u.certificate(asked.Context(), c)
		}
	}
	return config, nil
}

// addresses returns that of a server, and of the proxy, if there is one.
func (c *cluster) addresses() (server, proxy *url.URL, err error) {
	if c.Proxy != "" {
		if proxy, err = url.Parse(c.Proxy); err != nil || proxy.Host == "" {
			return nil, nil, errors.New("proxy-url: want a URL")
		}
	}
	server, err = url.Parse(c.Server)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, nil, errors.New("server: want https://HOST")
	}
	return server, proxy, nil
}

// login returns what the user logs in with.
func (u *user) login(ctx context.Context, c *cluster) (*given, error) {
	if u.Exec != nil {
		return u.Exec.run(ctx, c)
	}
	token, err := []byte(u.Token), error(nil)
	if u.Token == "" && u.TokenFile != "" {
		token, err = os.ReadFile(u.TokenFile)
	}
	cert, errCert := content(u.CertificateData, u.Certificate)
	key, errKey := content(u.KeyData, u.Key)
	return &given{Token: strings.TrimSpace(string(token)), CertificateData: string(cert), KeyData: string(key)}, errors.Join(err, errCert, errKey)
}

// certificate returns the one that the user shows to the server.
func (u *user) certificate(ctx context.Context, c *cluster) (*tls.Certificate, error) {
	given, err := u.login(ctx, c)
	if err != nil || given.CertificateData == "" {
		return new(tls.Certificate), err
	}
	pair, err := tls.X509KeyPair([]byte(given.CertificateData), []byte(given.KeyData))
	return &pair, err
}

// plugin is a program that gives credentials, as those of large clouds have it.
type plugin struct {
	APIVersion string `yaml:"apiVersion"`
	Command    string
	Args       []string
	Env        []struct{ Name, Value string }
	Tells      bool `yaml:"provideClusterInfo"`

	mu    sync.Mutex // held while the program runs
	given *given     // until it ends, or the server refuses it
}

// given is what the program has printed, or the files have.
type given struct {
	Token           string    `json:"token"`
	CertificateData string    `json:"clientCertificateData"`
	KeyData         string    `json:"clientKeyData"`
	Until           time.Time `json:"expirationTimestamp"`
}

// run returns the credentials that the program has given, or gives now.
func (p *plugin) run(ctx context.Context, c *cluster) (*given, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given != nil && (p.given.Until.IsZero() || time.Now().Before(p.given.Until)) {
		return p.given, nil
	}
	spec := map[string]any{"interactive": false}
	if p.Tells {
		authority, err := content(c.AuthorityData, c.Authority)
		if err != nil {
			return nil, fmt.Errorf("certificate-authority: %w", err)
		}
		tells := *c
		tells.AuthorityData = base64.StdEncoding.EncodeToString(authority)
		spec["cluster"] = &tells
	}
	info, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": spec})
	if err != nil {
		return nil, err
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Command, p.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Environ(), &out, &problems, time.Second
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+string(info))
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the kubeconfig's program %s: %w: %.200s", filepath.Base(p.Command), err, bytes.TrimSpace(problems.Bytes()))
	}
	var said struct{ Status *given }
	if err := json.Unmarshal(out.Bytes(), &said); err != nil || said.Status == nil {
		return nil, fmt.Errorf("the kubeconfig's program %s: want an ExecCredential with a status on its standard output", filepath.Base(p.Command))
	}
	p.given = said.Status
	return p.given, nil
}

// forget drops credentials that the server refuses. Without a program it does nothing.
func (p *plugin) forget() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = nil
}
