package kubernetes

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// each checks the manifests of the HTTP service.
func each(t *testing.T, check func(*testing.T, manifest)) { eachOf(t, files, check) }

func eachOf(t *testing.T, files []string, check func(*testing.T, manifest)) {
	for _, file := range files {
		t.Run(file, func(t *testing.T) { check(t, load(t, file)) })
	}
}

// Whatever one part of a file names, another one has.
func TestNamesFit(t *testing.T) {
	eachOf(t, allFiles, func(t *testing.T, m manifest) {
		selector, pod := m.pods()
		assert.Subset(t, pod.Labels, selector.MatchLabels)
		require.Len(t, pod.Spec.Containers, 1)
		ports := make(map[string]int32)
		for _, port := range m.container().Ports {
			ports[port.Name] = port.ContainerPort
		}

		headless := ""
		for _, service := range m.services {
			assert.Subset(t, pod.Labels, service.Spec.Selector, "service %s", service.Name)
			for _, port := range service.Spec.Ports {
				assert.Contains(t, ports, port.TargetPort.StrVal, "service %s", service.Name)
			}
			if service.Spec.ClusterIP == corev1.ClusterIPNone {
				headless = service.Name
			}
		}
		if m.statefulSet != nil {
			assert.NotEmpty(t, headless)
			assert.Equal(t, headless, m.statefulSet.Spec.ServiceName)
		}
		for name, probe := range probes(m) {
			require.NotNil(t, probe, name)
			assert.Contains(t, ports, probe.HTTPGet.Port.StrVal, name)
		}
		for flag, port := range map[string]string{"listen": "http", "resp": "resp", "http": "https", "grpc": "grpc", "probes": "probes"} {
			if listen := argument(m, flag); listen != "" {
				assert.Equal(t, ":"+strconv.Itoa(int(ports[port])), listen, flag)
				delete(ports, port)
			}
		}
		assert.Empty(t, ports, "ports at which the program does not listen")
	})
}

func probes(m manifest) map[string]*corev1.Probe {
	c := m.container()
	return map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe}
}

// argument returns the value of a flag, or "".
func argument(m manifest, name string) string {
	for _, arg := range m.container().Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}
