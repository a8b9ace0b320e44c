// Package kubernetes has the tests of stores/kubernetes on real servers.
package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordination "k8s.io/api/coordination/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	_ "github.com/tickflake/tickflake/internal/rig/servers/etcd"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/kubernetes"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// start runs an API server on an etcd. Without its program, which takes ten minutes to build, it skips
// the test.
func start(t *testing.T) (s, back *servers.Server) {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(cache, "tickflake", "kubeapiserver")); err != nil {
		t.Skip("the API server is not built: .ci/run nightly builds it, by the command in internal/rig/kubeapiserver")
	}
	back = servers.For(t, servers.Etcd)
	return servers.For(t, servers.Kubernetes, "--etcd-servers=http://"+back.Addr), back
}

func admin(t testing.TB, s *servers.Server) *clients.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(s.Addr, "admin"))
	require.NoError(t, err)
	client, err := clients.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestEngine(t *testing.T) {
	s, _ := start(t)
	e := enginetest.Engine{
		Name: "k8s at " + s.Addr, Server: s,
		New: func(t testing.TB, addr, namespace string) stores.Store {
			return enginetest.Open(t, s.At(addr, "namespace="+namespace))
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"tickflake.io/cell": text}}})
			require.NoError(t, err)
			_, err = admin(t, s).CoordinationV1().Leases("default").Patch(enginetest.Within(t), name(namespace)+"."+name(key), types.MergePatchType, patch, meta.PatchOptions{})
			require.NoError(t, err)
		},
		TLS:     func(url string) string { return url },
		Plateau: enginetest.Plateau{AtRest: 4, AtMost: 16},
	}
	e.Test(t)
}

// name is that of a cell as the package's doc describes it, for keys without special characters.
func name(text string) string {
	text = strings.NewReplacer("z", "z3", "/", ".").Replace(text)
	return regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(text, func(c string) string { return "z" + strings.ToLower(c) })
}

// The rights in the package's doc are enough, and needed.
func TestRights(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	roles, ctx := admin(t, s).RbacV1(), enginetest.Within(t)
	role := &rbac.Role{ObjectMeta: meta.ObjectMeta{Name: "ids"}}
	_, err := roles.Roles("default").Create(ctx, role, meta.CreateOptions{})
	require.NoError(t, err)
	_, err = roles.RoleBindings("default").Create(ctx, &rbac.RoleBinding{ObjectMeta: meta.ObjectMeta{Name: "ids"},
		RoleRef: rbac.RoleRef{Kind: "Role", Name: "ids"}, Subjects: []rbac.Subject{{Kind: "User", Name: "flake"}}}, meta.CreateOptions{})
	require.NoError(t, err)
	allow := func(verbs ...string) {
		role.Rules = []rbac.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs}}
		_, err := roles.Roles("default").Update(ctx, role, meta.UpdateOptions{})
		require.NoError(t, err)
	}
	url := "k8s://default/p?kubeconfig=" + s.Kubeconfig(s.Addr, "flake")
	all := []string{"get", "list", "create", "update"}
	allow(all...)
	var store stores.Store
	enginetest.Until(t, func(ctx context.Context) (err error) { // the server learns of a role some time later
		store, err = stores.Open(ctx, url)
		return err
	})
	defer store.Close() //nolint:errcheck // the test has ended
	enginetest.Works(t, store)
	refusal := func(t *testing.T) enginetest.Refusal {
		return enginetest.Refusal{Store: store, Refuse: func() { allow("get", "list", "create") }, Fix: func() { allow(all...) },
			Want: "cannot update resource", Advice: "bind the Role"}
	}
	enginetest.TestRefusals(t, map[string]func(t *testing.T) enginetest.Refusal{"update": refusal})
	_, err = stores.Open(ctx, "k8s://kube-system?kubeconfig="+s.Kubeconfig(s.Addr, "flake"))
	require.ErrorIs(t, err, stores.Refused)
	assert.ErrorContains(t, err, `cannot get resource "leases"`)
	assert.NotContains(t, err.Error(), s.Password)
}

// kubectl get lease shows who holds a node number.
func TestShown(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	g, err := generator.Open(enginetest.Within(t), s.URL)
	require.NoError(t, err)
	defer g.Close() //nolint:errcheck // the test has ended
	_, err = g.NextContext(enginetest.Within(t))
	require.NoError(t, err)
	var held *coordination.Lease
	leases, err := admin(t, s).CoordinationV1().Leases("default").List(enginetest.Within(t), meta.ListOptions{})
	require.NoError(t, err)
	for i := range leases.Items {
		if leases.Items[i].Spec.HolderIdentity != nil {
			held = &leases.Items[i]
		}
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	require.NotNil(t, held, "%v", leases.Items)
	assert.Contains(t, *held.Spec.HolderIdentity, fmt.Sprint(host))
	assert.WithinDuration(t, time.Now(), held.Spec.RenewTime.Time, time.Minute)
}

func TestOutage(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	enginetest.TestOutage(t, s)
}

// The API server runs, and its etcd does not answer for longer than a grant lasts.
func TestEtcdStopped(t *testing.T) {
	t.Parallel()
	s, back := start(t)
	fleet := enginetest.StartFleet(t, enginetest.FleetConfig{Processes: 3, Window: 2 * time.Second, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, s.URL) }})
	fleet.WaitIssued(t, 10, time.Minute)
	require.NoError(t, back.Suspend())
	fleet.Crash(0)
	fleet.Step(-time.Hour, 1)
	resume := time.AfterFunc(3*time.Second, func() { _ = back.Resume() })
	defer resume.Stop()
	fleet.WaitRecovered(t, 10, 2*time.Minute)
	fleet.Close(t).Check(t)
}

func TestMove(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	path := t.TempDir()
	enginetest.Move{
		From: func() stores.Store { return enginetest.Open(t, path) },
		To:   func() stores.Store { return enginetest.Open(t, s.At(s.Addr, "namespace=moved")) },
	}.Run(t)
}
