//go:build unix

package examples

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory" // a path in stores.Open
)

// object is of Kubernetes, with what the tests look at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ClusterIP   string         `yaml:"clusterIP"`
		ServiceName string         `yaml:"serviceName"`
		Selector    map[string]any // of a Service, labels; else an API server checks it
		Ports       []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]any }
			Spec     struct{ Containers []container }
		}
	}
}

type container struct {
	Image string
	Args  []string
	Env   []struct {
		Name, Value string
		From        map[string]any `yaml:"valueFrom"`
	}
	Ports     []listens
	Startup   probe `yaml:"startupProbe"`
	Liveness  probe `yaml:"livenessProbe"`
	Readiness probe `yaml:"readinessProbe"`
	Mounts    []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type listens struct {
	Name string
	Port int `yaml:"containerPort"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// load returns the container of a file and its Services, and checks that each label, port and service that one part
// of the file names is in another. Package engines has an API server validate it.
func load(t *testing.T, file string) container {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("kubernetes", file))
	require.NoError(t, err)
	var services []object
	var pods object // a Deployment or StatefulSet
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o object
		require.NoError(t, yaml.Unmarshal(document, &o))
		switch o.Kind {
		case "Service":
			services = append(services, o)
		case "Deployment", "StatefulSet":
			pods = o
		}
	}
	require.Len(t, pods.Spec.Template.Spec.Containers, 1)
	c, headless := pods.Spec.Template.Spec.Containers[0], pods.Spec.ServiceName == ""
	for _, service := range services {
		assert.Subset(t, pods.Spec.Template.Metadata.Labels, service.Spec.Selector, service.Metadata.Name)
		for _, port := range service.Spec.Ports {
			assert.True(t, slices.ContainsFunc(c.Ports, func(p listens) bool { return p.Name == port.TargetPort }), "%s: %s", service.Metadata.Name, port.TargetPort)
		}
		headless = headless || service.Metadata.Name == pods.Spec.ServiceName && service.Spec.ClusterIP == "None"
	}
	assert.True(t, headless, "no headless service is called %q", pods.Spec.ServiceName)
	return c
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
			container, root, store := load(t, c.file), t.TempDir(), t.TempDir()
			path, err := program.Build(c.program, false)
			require.NoError(t, err)

			// The files that the manifest mounts, and ports that are free here.
			client := http.DefaultClient
			var token string
			for _, mount := range container.Mounts {
				dir := filepath.Join(root, mount.Path)
				require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
				switch mount.Name {
				case "tls": // as cert-manager writes it
					authority, files := servicetest.NewAuthority(t), servicetest.NewFiles(t)
					certificate, key := authority.Issue(t, "localhost", servicetest.ForServers, time.Hour)
					files.Put(t, certificate, key, authority.PEM())
					require.NoError(t, os.Symlink(filepath.Dir(files.Cert), dir))
					client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}}}
				case "config":
					require.NoError(t, os.Mkdir(dir, 0o700))
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
				replace = append(replace, "=:"+strconv.Itoa(port.Port), "=127.0.0.1:"+free)
				ports[port.Name] = "127.0.0.1:" + free
			}
			env := []string{"TICKFLAKE_PORT=tcp://10.0.0.1:443"} // as a service of the name tickflake would set it
			for _, e := range container.Env {
				value := e.Value
				switch from := fmt.Sprint(e.From); {
				case e.Name == "TICKFLAKE_STORE": // no cluster is here
					value = "file:" + store
				case from == "map[]":
				case from == "map[fieldRef:map[fieldPath:metadata.namespace]]":
					value = "shop"
				case from == "map[fieldRef:map[fieldPath:metadata.labels['apps.kubernetes.io/pod-index']]]":
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
			answers := func(p probe) func(context.Context) error {
				return program.Answers("http://" + ports[p.HTTPGet.Port] + p.HTTPGet.Path)
			}
			config.Ready = answers(container.Startup)
			p := program.For(t, config)
			require.NoError(t, answers(container.Liveness)(t.Context()))
			require.NoError(t, answers(container.Readiness)(t.Context()))

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
