package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var (
	files    = []string{"statefulset.yaml", "deployment.yaml"} // of the HTTP service
	allFiles = append([]string{serveFile}, files...)
)

// manifest is what a file holds.
type manifest struct {
	services    []corev1.Service
	budget      *policyv1.PodDisruptionBudget
	statefulSet *appsv1.StatefulSet // or
	deployment  *appsv1.Deployment
}

// decode reads a file as the API server reads it with strict validation: a field that
// Kubernetes does not have, or that comes twice, is an error, as is a value that its
// field cannot hold.
func decode(text []byte) (m manifest, err error) {
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		var is metav1.TypeMeta
		if err := yaml.Unmarshal(document, &is); err != nil {
			return m, fmt.Errorf("document %d: %w", i, err)
		}
		var into any
		switch is.APIVersion + " " + is.Kind {
		case "v1 Service":
			m.services = append(m.services, corev1.Service{})
			into = &m.services[len(m.services)-1]
		case "policy/v1 PodDisruptionBudget":
			m.budget = new(policyv1.PodDisruptionBudget)
			into = m.budget
		case "apps/v1 StatefulSet":
			m.statefulSet = new(appsv1.StatefulSet)
			into = m.statefulSet
		case "apps/v1 Deployment":
			m.deployment = new(appsv1.Deployment)
			into = m.deployment
		default:
			return m, fmt.Errorf("document %d is of kind %q, version %q", i, is.Kind, is.APIVersion)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			return m, fmt.Errorf("document %d, a %s: %w", i, is.Kind, err)
		}
	}
	if (m.statefulSet == nil) == (m.deployment == nil) {
		return m, fmt.Errorf("want a StatefulSet or a Deployment")
	}
	return m, nil
}

func load(t *testing.T, file string) manifest {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	m, err := decode(text)
	require.NoError(t, err, file)
	return m
}

// pods returns what selects the pods, and what they are like.
func (m manifest) pods() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	if m.statefulSet != nil {
		return m.statefulSet.Spec.Selector, m.statefulSet.Spec.Template
	}
	return m.deployment.Spec.Selector, m.deployment.Spec.Template
}

func (m manifest) container() corev1.Container {
	_, pod := m.pods()
	return pod.Spec.Containers[0]
}
