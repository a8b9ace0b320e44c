//go:build unix

package examples

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory" // a path in stores.Open
)

// object is of Kubernetes, with what the tests look at.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		ClusterIP   string         `yaml:"clusterIP"`
		ServiceName string         `yaml:"serviceName"`
		Selector    map[string]any // of a Service, labels; else an API server checks it
		Ports       []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []container }
		}
	}
}

type container struct {
	Image string
	Args  []string
	Env   []struct {
		Name, Value string
		ValueFrom   *struct {
			SecretKeyRef *struct{ Name, Key string } `yaml:"secretKeyRef"`
			FieldRef     *struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	VolumeMounts   []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// manifest is what a file holds.
type manifest struct {
	services []object
	workload object // a Deployment or StatefulSet
	container
}

// load reads a file. Package engines has an API server validate it.
func load(t *testing.T, file string) (m manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("kubernetes", file))
	require.NoError(t, err)
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o object
		require.NoError(t, yaml.Unmarshal(document, &o))
		switch o.Kind {
		case "Service":
			m.services = append(m.services, o)
		case "Deployment", "StatefulSet":
			m.workload = o
		}
	}
	require.Len(t, m.workload.Spec.Template.Spec.Containers, 1)
	m.container = m.workload.Spec.Template.Spec.Containers[0]
	return m
}

// names checks that each label, port and service that one part of a file names is in another.
func names(t *testing.T, m manifest) {
	labels, spec := m.workload.Spec.Template.Metadata.Labels, m.workload.Spec
	ports, headless := map[string]bool{}, spec.ServiceName == ""
	for _, port := range m.Ports {
		ports[port.Name] = true
	}
	for _, service := range m.services {
		for label, value := range service.Spec.Selector {
			assert.Equal(t, value, any(labels[label]), service.Metadata.Name)
		}
		for _, port := range service.Spec.Ports {
			assert.Contains(t, ports, port.TargetPort, service.Metadata.Name)
		}
		headless = headless || service.Metadata.Name == spec.ServiceName && service.Spec.ClusterIP == "None"
	}
	assert.True(t, headless, "no headless service is called %q", spec.ServiceName)
}

// certificate writes what cert-manager would, the certificate of a test server for 127.0.0.1 and its key, and
// returns a client that trusts it.
func certificate(t *testing.T, dir string) *http.Client {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return server.Client()
}

// Each resource and image that "kubectl apply -k" takes is in the manifests.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile("kubernetes/kustomization.yaml")
	require.NoError(t, err)
	var k struct {
		Resources []string
		Images    []struct{ Name string }
	}
	require.NoError(t, yaml.Unmarshal(text, &k))
	require.Len(t, k.Resources, 1)
	require.Len(t, k.Images, 1)
	name, _, _ := strings.Cut(load(t, k.Resources[0]).Image, ":")
	assert.Equal(t, k.Images[0].Name, name)
}

// The container of each manifest runs as it says: it takes the arguments and the environment, listens
// at the ports, answers the probes, serves, and releases its node number when it ends.
func TestPodsRun(t *testing.T) {
	t.Parallel()
	const anyNode = -1 // node number
	for _, c := range []struct {
		file, program, issue string
		node                 int64
	}{
		{"deployment.yaml", "./examples/httpservice", "http /id", anyNode},
		{"statefulset.yaml", "./examples/httpservice", "http /id", 2},
		{"serve.yaml", "./cmd/tickflake", "https /v1/ids", anyNode},
		{"store.yaml", "./cmd/tickflake", "http /v1/ids", anyNode},
	} {
		t.Run(c.file, func(t *testing.T) {
			if testing.Short() {
				t.Skip("-short builds no program")
			}
			t.Parallel()
			m := load(t, c.file)
			names(t, m)
			container, root, store := m.container, t.TempDir(), t.TempDir()
			path, err := fleet.Build(c.program, false)
			require.NoError(t, err)

			// The files that the manifest mounts, and ports that are free here.
			client := http.DefaultClient
			var token string
			for _, mount := range container.VolumeMounts {
				dir := filepath.Join(root, mount.MountPath)
				require.NoError(t, os.MkdirAll(dir, 0o700))
				switch mount.Name {
				case "tls":
					client = certificate(t, dir)
				case "config":
					made := strings.Fields(program.RunFor(t, program.Config{Path: path, Args: []string{"serve", "token"}}))
					token = made[1]
					clients, err := os.ReadFile("kubernetes/config/clients.yaml")
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(filepath.Join(dir, "clients.yaml"), bytes.Replace(clients, []byte(`"`+strings.Repeat("0", 63)+`1"`), []byte(made[3]), 1), 0o600))
				}
			}
			replace, ports := []string{"=/etc/", "=" + root + "/etc/"}, map[string]string{}
			for _, port := range container.Ports {
				free := strconv.Itoa(program.PortFor(t))
				replace = append(replace, "=:"+strconv.Itoa(port.ContainerPort), "=127.0.0.1:"+free)
				ports[port.Name] = "127.0.0.1:" + free
			}
			env := []string{"TICKFLAKE_PORT=tcp://10.0.0.1:443"} // as a service of the name tickflake would set it
			for _, e := range container.Env {
				value := e.Value
				switch from := e.ValueFrom; {
				case e.Name == "TICKFLAKE_STORE" && from == nil: // no cluster is here
					value = "file:" + store
				case from == nil:
				case from.SecretKeyRef != nil:
					value = "file:" + store
				case from.FieldRef.FieldPath == "metadata.namespace":
					value = "shop"
				case from.FieldRef.FieldPath == "metadata.labels['apps.kubernetes.io/pod-index']":
					value = "2"
				default:
					t.Fatalf("%s: from where?", e.Name)
				}
				env = append(env, e.Name+"="+value)
				replace = append(replace, "$("+e.Name+")", value)
			}
			config := program.Config{Path: path, Env: env, Quit: syscall.SIGTERM}
			for _, arg := range container.Args {
				config.Args = append(config.Args, strings.NewReplacer(replace...).Replace(arg))
			}
			probe := func(ctx context.Context, p probe) error {
				_, err := fleet.Get(ctx, "http://"+ports[p.HTTPGet.Port]+p.HTTPGet.Path)
				return err
			}
			config.Ready = func(ctx context.Context) error { return probe(ctx, container.StartupProbe) }
			p := program.For(t, config)
			require.NoError(t, probe(t.Context(), container.LivenessProbe))
			require.NoError(t, probe(t.Context(), container.ReadinessProbe))

			port, url, _ := strings.Cut(c.issue, " ")
			post := func(token string) int {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, port+"://"+ports[port]+url, nil)
				require.NoError(t, err)
				request.Header.Set("Authorization", "Bearer "+token)
				answer, err := client.Do(request)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				return answer.StatusCode
			}
			assert.Equal(t, http.StatusOK, post(token))
			if token != "" {
				assert.Equal(t, http.StatusUnauthorized, post("another"))
			}
			opened, err := stores.Open(t.Context(), store)
			require.NoError(t, err)
			defer func() { _ = opened.Close() }()
			held, err := lease.List(t.Context(), opened)
			require.NoError(t, err)
			require.Len(t, held, 1)
			if c.node != anyNode {
				assert.EqualValues(t, c.node, held[0].Node)
			}
			require.NoError(t, p.End())
			held, err = lease.List(t.Context(), opened)
			require.NoError(t, err)
			assert.Equal(t, lease.Released, held[0].State)
		})
	}
}
