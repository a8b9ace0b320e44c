package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory" // a path in stores.Open
)

// hostEnv makes the test binary take this host name, in a namespace of its own, and
// then become the program of its arguments.
const hostEnv = "KUBERNETES_TEST_HOST"

// notAllowed is the exit code of a test binary that must not take a host name.
const notAllowed = 77

func TestMain(m *testing.M) {
	if host := os.Getenv(hostEnv); host != "" {
		err := syscall.Sethostname([]byte(host))
		if errors.Is(err, syscall.EPERM) {
			os.Exit(notAllowed)
		}
		if err == nil {
			err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	exampletest.Main(m)
}

// environment is what the kubelet would give to the container of a pod.
func environment(t *testing.T, c corev1.Container, pod, storeURL string) map[string]string {
	t.Helper()
	fields := map[string]string{"metadata.name": pod, "metadata.namespace": "shop"}
	env := make(map[string]string)
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			require.Contains(t, fields, e.ValueFrom.FieldRef.FieldPath)
			env[e.Name] = fields[e.ValueFrom.FieldRef.FieldPath]
		case e.ValueFrom.SecretKeyRef != nil:
			env[e.Name] = storeURL
		default:
			t.Fatalf("%s: from where?", e.Name)
		}
	}
	return env
}

// arguments are those of the container, with $(NAME) replaced, and on another port.
func arguments(t *testing.T, c corev1.Container, env map[string]string, addr string) (args []string) {
	t.Helper()
	for _, arg := range c.Args {
		arg = regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(arg, func(ref string) string {
			name := ref[2 : len(ref)-1]
			require.Contains(t, env, name)
			return env[name]
		})
		if strings.HasPrefix(arg, "--listen=") {
			arg = "--listen=" + addr
		}
		args = append(args, arg)
	}
	return args
}

// refused skips the test, or fails it with TICKFLAKE_REQUIRE_SERVERS=1.
func refused(t *testing.T) {
	t.Helper()
	const why = "the system does not let this user give a pod a host name of its own; run the test as root"
	if os.Getenv(servertest.RequireEnv) == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// run starts the container as the pod of that name, with that name as its host name if
// hostMatters.
func run(t *testing.T, c corev1.Container, pod string, hostMatters bool, addr, storeURL string) *exampletest.Program {
	t.Helper()
	env := environment(t, c, pod, storeURL)
	cmd := exec.Command(exampletest.Build(t, "./httpservice"), arguments(t, c, env, addr)...)
	cmd.Env = []string{} // or it would be that of the test
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if hostMatters {
		takeHost(t, cmd, pod)
	}
	p, err := exampletest.StartCommand(t, cmd)
	if errors.Is(err, syscall.EPERM) {
		refused(t)
	}
	require.NoError(t, err)
	return p
}

// takeHost has a command run with a host name of its own.
func takeHost(t *testing.T, cmd *exec.Cmd, host string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd.Path, cmd.Args = self, append([]string{self}, cmd.Args...)
	cmd.Env = append(cmd.Env, hostEnv+"="+host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
}

// The service runs as the manifests say: it takes the arguments and the environment,
// answers the probes, has the node number that it should have, and ends well.
func TestPodRuns(t *testing.T) {
	each(t, func(t *testing.T, m manifest) {
		pod := "ids-5f7c9d-x2x4z"
		if m.statefulSet != nil {
			pod = m.statefulSet.Name + "-2"
		}
		dir := t.TempDir()
		addr := "127.0.0.1:" + strconv.Itoa(servertest.Port(t))
		p := run(t, m.container(), pod, m.statefulSet != nil, addr, "file:"+dir)

		// probe does what the kubelet does, and returns the answer.
		probe := func(name string) (status int, body []byte, err error) {
			res, err := http.Get("http://" + addr + probes(m)[name].HTTPGet.Path)
			if err != nil {
				return 0, nil, err
			}
			defer res.Body.Close() //nolint:errcheck // it was only read
			body, err = io.ReadAll(res.Body)
			return res.StatusCode, body, err
		}
		exampletest.Until(t, func() error {
			if p.Ended() {
				if p.Wait() == notAllowed {
					refused(t)
				}
				t.Fatal("it ended before it was ready")
			}
			status, _, err := probe("startup")
			if err == nil {
				require.Equal(t, http.StatusOK, status)
			}
			return err
		})
		status, _, err := probe("liveness")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
		status, body, err := probe("readiness")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
		var ready struct{ Node int64 }
		require.NoError(t, json.Unmarshal(body, &ready))
		held := inspect(t, dir)
		assert.Equal(t, lease.Held, held.State)
		assert.Equal(t, "shop/"+pod, held.Owner)
		assert.Equal(t, ready.Node, held.Node)
		if m.statefulSet != nil {
			assert.EqualValues(t, 2, held.Node)
		}

		p.Signal(syscall.SIGTERM)
		assert.Equal(t, 0, p.Wait())
		assert.Equal(t, lease.Released, inspect(t, dir).State)
	})
}

func inspect(t *testing.T, dir string) lease.Holding {
	t.Helper()
	store, err := stores.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	holdings, err := lease.List(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, holdings, 1)
	return holdings[0]
}
