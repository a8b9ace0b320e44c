package kubernetes

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
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

// What happens to one machine, or is done to it, does not take all pods away.
func TestOneMachineIsNotAll(t *testing.T) {
	eachOf(t, allFiles, func(t *testing.T, m manifest) {
		_, pod := m.pods()
		require.NotNil(t, m.budget)
		assert.Subset(t, pod.Labels, m.budget.Spec.Selector.MatchLabels)
		assert.NotEmpty(t, m.budget.Spec.Selector.MatchLabels)
		assert.Equal(t, 1, m.budget.Spec.MaxUnavailable.IntValue())
		require.Len(t, pod.Spec.TopologySpreadConstraints, 1)
		spread := pod.Spec.TopologySpreadConstraints[0]
		assert.Equal(t, corev1.LabelHostname, spread.TopologyKey)
		assert.Equal(t, m.budget.Spec.Selector.MatchLabels, spread.LabelSelector.MatchLabels)
		assert.EqualValues(t, 1, spread.MaxSkew)
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

// A pod has the time that it takes to start and to end.
func TestTimesFit(t *testing.T) {
	help := help(t)
	match := regexp.MustCompile(`releasing the node number has (\S+) more`).FindStringSubmatch(help)
	require.NotNil(t, match)
	release, err := time.ParseDuration(match[1])
	require.NoError(t, err)
	each(t, func(t *testing.T, m manifest) {
		c := m.container()
		claim, err := time.ParseDuration(defaultOf(t, help, "claim-timeout"))
		require.NoError(t, err)
		startup := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second
		assert.Greater(t, startup, claim)

		grace, err := time.ParseDuration(argument(m, "grace"))
		require.NoError(t, err)
		_, pod := m.pods()
		before := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		assert.Greater(t, time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second, before+grace+release)
	})
}

// help is what the service prints about its flags.
func help(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(exampletest.Build(t, "./httpservice"), "--help").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func defaultOf(t *testing.T, help, name string) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^  -` + name + `\b.*\n.*\(default "?([^")]+)"?\)$`).FindStringSubmatch(help)
	require.NotNil(t, match, "no default of --%s in:\n%s", name, help)
	return match[1]
}
