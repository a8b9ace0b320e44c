//go:build unix

package engines

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/kubernetes"
)

type object = map[string]any

// kube is a request to an API server by its administrator, and the answer.
func kube(t testing.TB, s *servers.Server, method, path string, body object) (answer object) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(Within(t), method, "https://"+s.Addr+path, bytes.NewReader(text))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.Password)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // it is ours
	got, err := client.Do(request)
	require.NoError(t, err)
	defer got.Body.Close() //nolint:errcheck // it was read
	require.NoError(t, json.NewDecoder(got.Body).Decode(&answer))
	require.Less(t, got.StatusCode, 300, "%s %s: %v", method, path, answer)
	return answer
}

const (
	kubeLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/"
	kubeRoles  = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
)

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
	e := Engine{
		Name: "k8s at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			kube(t, s, http.MethodPatch, kubeLeases+kubeName(namespace)+"."+kubeName(key), object{"metadata": object{"annotations": object{"tickflake.io/cell": text}}})
		},
		Delete: map[string]func(testing.TB, string, string){"deleted": func(t testing.TB, namespace, key string) {
			kube(t, s, http.MethodDelete, kubeLeases+kubeName(namespace)+"."+kubeName(key), object{})
		}},
		TLS:    func(url string) string { return url },
		HTTP:   HTTP{Conflict: http.StatusConflict, Busy: http.StatusTooManyRequests},
		AtRest: 4, AtMost: 16,
	}
	e.Test(t)
	t.Run("manifests", func(t *testing.T) { testKubeManifests(t, s) })
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
	ctx := t.Context()
	text, err := os.ReadFile(filepath.Join(program.Top(), "examples", "kubernetes", "store.yaml"))
	require.NoError(t, err)
	var role, binding object
	documents := bytes.Split(text, []byte("\n---\n"))
	require.NoError(t, yaml.Unmarshal(documents[1], &role))
	require.NoError(t, yaml.Unmarshal(documents[2], &binding))
	account := binding["subjects"].([]any)[0].(object)["name"].(string)
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	kube(t, s, http.MethodPost, accounts, object{"metadata": object{"name": account}})
	token := kube(t, s, http.MethodPost, accounts+"/"+account+"/token", object{})["status"].(object)["token"].(string)
	kube(t, s, http.MethodPost, kubeRoles+"roles", role)
	kube(t, s, http.MethodPost, kubeRoles+"rolebindings", binding)
	rule := role["rules"].([]any)[0].(object)
	var verbs []string
	for _, verb := range rule["verbs"].([]any) {
		verbs = append(verbs, verb.(string))
	}
	allow := func(allowed ...string) {
		rule["verbs"] = allowed
		kube(t, s, http.MethodPut, kubeRoles+"roles/"+role["metadata"].(object)["name"].(string), role)
		for _, verb := range verbs { // the server learns of a role some time later
			review := object{"spec": object{"user": "system:serviceaccount:default:" + account,
				"resourceAttributes": object{"namespace": "default", "verb": verb, "group": "coordination.k8s.io", "resource": "leases"}}}
			Until(t, func(context.Context) error {
				is := kube(t, s, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
				if is["status"].(object)["allowed"] != slices.Contains(allowed, verb) {
					return errors.New("not yet")
				}
				return nil
			})
		}
	}
	allow(verbs...)
	of := func(user, token string) string {
		return strings.Replace(s.URL, "admin.token", filepath.Base(s.Token(user, token)), 1)
	}
	url := of(account, token)
	store := Open(t, url+"&namespace=rights")
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
	testDenied(t, s, map[string]string{
		strings.Replace(url, "default", "kube-system", 1): `cannot get resource "leases"`,
		of("other", "wr0ng"):                              "refuses the credentials",
	})
	_, err = Open(t, strings.Replace(s.URL, "default", "nowhere", 1)).Swap(ctx, "node/0000001", 0, nil)
	require.ErrorIs(t, err, stores.Permanent)
	assert.ErrorContains(t, err, "no such namespace")
}

// testKubeManifests has the server validate each object of the examples: a field that Kubernetes does not have, or
// a value that it cannot hold, is an error.
func testKubeManifests(t *testing.T, s *servers.Server) {
	files, err := filepath.Glob(filepath.Join(program.Top(), "examples", "kubernetes", "*.yaml"))
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var o object
			require.NoError(t, yaml.Unmarshal(document, &o))
			group, kind := o["apiVersion"].(string), o["kind"].(string)
			prefix := "/apis/" + group
			switch {
			case kind == "Kustomization":
				continue
			case group == "v1":
				prefix = "/api/v1"
			}
			kube(t, s, http.MethodPost, prefix+"/namespaces/default/"+strings.ToLower(kind)+"s?dryRun=All&fieldValidation=Strict", o)
			n++
		}
	}
	assert.Greater(t, n, 10)
}
