//go:build unix

package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/kubernetes"
)

func kubeAdmin(t testing.TB, s *servers.Server) *clients.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(s.Addr, s.Password))
	require.NoError(t, err)
	client, err := clients.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// Without the API server's program, which takes ten minutes to build, the test is skipped.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(cache, "tickflake", "kubeapiserver")); err != nil {
		t.Skip("the API server is not built: .ci/run nightly builds it, by the command in integration/servers/kubeapiserver")
	}
	back := servers.For(t, servers.Etcd, "unsafe-no-fsync: true") // it is never killed
	s := servers.For(t, servers.Kubernetes, "--etcd-servers=http://"+back.Addr)
	leases := kubeAdmin(t, s).CoordinationV1().Leases("default")
	e := Engine{
		Name: "k8s at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"tickflake.io/cell": text}}})
			require.NoError(t, err)
			_, err = leases.Patch(Within(t), kubeName(namespace)+"."+kubeName(key), types.MergePatchType, patch, meta.PatchOptions{})
			require.NoError(t, err)
		},
		Delete: map[string]func(testing.TB, string, string){"deleted": func(t testing.TB, namespace, key string) {
			require.NoError(t, leases.Delete(Within(t), kubeName(namespace)+"."+kubeName(key), meta.DeleteOptions{}))
		}},
		TLS:    func(url string) string { return url },
		HTTP:   HTTP{Conflict: http.StatusConflict, Busy: http.StatusTooManyRequests},
		AtRest: 4, AtMost: 16,
	}
	e.Test(t)
	t.Run("shown", func(t *testing.T) { testKubeShown(t, s) })
	t.Run("rights", func(t *testing.T) { testKubeRights(t, s) })
	testAlone(t, s, map[string][2]func() error{"killed": {s.Kill, s.Start}, "etcd stopped": {back.Suspend, back.Resume}})
}

// kubeName is that of a cell as the package's doc describes it, for keys without special characters.
func kubeName(text string) string {
	text = strings.NewReplacer("z", "z3", "/", ".").Replace(text)
	return regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(text, func(c string) string { return "z" + strings.ToLower(c) })
}

// testKubeRights gives a service account the Role of the example, which is enough, and needed.
func testKubeRights(t *testing.T, s *servers.Server) {
	client, ctx := kubeAdmin(t, s), t.Context()
	text, err := os.ReadFile(filepath.Join(fleet.Top(), "examples", "kubernetes", "store.yaml"))
	require.NoError(t, err)
	var role rbac.Role
	var binding rbac.RoleBinding
	documents := bytes.Split(text, []byte("\n---\n"))
	require.NoError(t, yaml.UnmarshalStrict(documents[1], &role))
	require.NoError(t, yaml.UnmarshalStrict(documents[2], &binding))
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: binding.Subjects[0].Name}}
	_, err = client.CoreV1().ServiceAccounts("default").Create(ctx, account, meta.CreateOptions{})
	require.NoError(t, err)
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, account.Name, &authentication.TokenRequest{}, meta.CreateOptions{})
	require.NoError(t, err)
	_, err = client.RbacV1().Roles("default").Create(ctx, &role, meta.CreateOptions{})
	require.NoError(t, err)
	_, err = client.RbacV1().RoleBindings("default").Create(ctx, &binding, meta.CreateOptions{})
	require.NoError(t, err)
	verbs := role.Rules[0].Verbs
	allow := func(allowed ...string) {
		changed := rbac.Role{ObjectMeta: meta.ObjectMeta{Name: role.Name}, Rules: []rbac.PolicyRule{role.Rules[0]}}
		changed.Rules[0].Verbs = allowed
		_, err := client.RbacV1().Roles("default").Update(Within(t), &changed, meta.UpdateOptions{})
		require.NoError(t, err)
		for _, verb := range verbs { // the server learns of a role some time later
			review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: "system:serviceaccount:default:" + account.Name,
				ResourceAttributes: &authorization.ResourceAttributes{Namespace: "default", Verb: verb, Group: "coordination.k8s.io", Resource: "leases"}}}
			Until(t, func(ctx context.Context) error {
				is, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, meta.CreateOptions{})
				if err == nil && is.Status.Allowed != slices.Contains(allowed, verb) {
					err = errors.New("not yet")
				}
				return err
			})
		}
	}
	allow(verbs...)
	config := s.Kubeconfig(s.Addr, token.Status.Token)
	store := Open(t, "k8s://default/p?kubeconfig="+config)
	Works(t, store)
	all := map[string]func(*testing.T) Refusal{}
	for _, verb := range []string{"get", "update"} { // which replace a cell
		others := slices.DeleteFunc(slices.Clone(verbs), func(other string) bool { return other == verb })
		all[verb] = func(*testing.T) Refusal {
			return Refusal{Store: store, Refuse: func() { allow(others...) }, Fix: func() { allow(verbs...) },
				Want: "cannot " + verb + " resource", Advice: "bind the Role"}
		}
	}
	testRefusals(t, all)
	assert.ElementsMatch(t, []string{"get", "list", "create", "update"}, verbs)
	for url, want := range map[string]string{
		"k8s://kube-system?kubeconfig=" + config:                    `cannot get resource "leases"`,
		"k8s://default?kubeconfig=" + s.Kubeconfig(s.Addr, "wrong"): "refuses the credentials",
	} {
		_, err = stores.Open(ctx, url)
		require.ErrorIs(t, err, stores.Refused)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), s.Password)
	}
	_, err = Open(t, strings.Replace(s.URL, "default", "nowhere", 1)).Swap(ctx, "node/0000001", 0, nil)
	require.ErrorIs(t, err, stores.Refused)
	assert.ErrorContains(t, err, "no such namespace")
}

// testKubeShown checks that kubectl get lease shows who holds a node number.
func testKubeShown(t *testing.T, s *servers.Server) {
	g, err := generator.Open(Within(t), s.At(s.Addr, "namespace=shown"))
	require.NoError(t, err)
	defer g.Close() //nolint:errcheck // the test has ended
	host, err := os.Hostname()
	require.NoError(t, err)
	lease, err := kubeAdmin(t, s).CoordinationV1().Leases("default").Get(Within(t), fmt.Sprintf("shown.node.%07d", g.Keeper().Node()), meta.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, *lease.Spec.HolderIdentity, host)
	assert.WithinDuration(t, time.Now(), lease.Spec.RenewTime.Time, time.Minute)
}
