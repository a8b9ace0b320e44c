package kubernetes

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// serveFile is the manifest of "tickflake serve".
const serveFile = "serve.yaml"

// The server has the rights of no user, and others cannot read its secrets.
func TestServePodIsConfined(t *testing.T) {
	m := load(t, serveFile)
	_, pod := m.pods()
	c := m.container()
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.NotZero(t, *pod.Spec.SecurityContext.RunAsUser)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)
	assert.False(t, *pod.Spec.EnableServiceLinks)
	assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	mounted := make(map[string]string)
	for _, mount := range c.VolumeMounts {
		assert.True(t, mount.ReadOnly)
		mounted[mount.Name] = mount.MountPath
	}
	for _, volume := range pod.Spec.Volumes {
		require.NotNil(t, volume.Secret, volume.Name)
		assert.Zero(t, fs.FileMode(*volume.Secret.DefaultMode)&0o007, volume.Name)
		path, ok := mounted[volume.Name]
		require.True(t, ok, volume.Name)
		assert.Contains(t, strings.Join(c.Args, " "), "="+path+"/", "what is mounted is used")
		delete(mounted, volume.Name)
	}
	assert.Empty(t, mounted)
	// The file has no password, token or key.
	text, err := os.ReadFile(serveFile)
	require.NoError(t, err)
	assert.NotRegexp(t, `(?i)password:|token-hash:|kind: Secret`, string(text))
}

// The pod has the time that it takes to start and to end.
func TestServeTimesFit(t *testing.T) {
	m := load(t, serveFile)
	_, pod := m.pods()
	c := m.container()
	seconds := func(flag string) time.Duration {
		d, err := time.ParseDuration(argument(m, flag))
		require.NoError(t, err, flag)
		return d
	}
	startup := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second
	assert.Greater(t, startup, seconds("timeout"))
	noticed := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
	assert.Greater(t, seconds("unready-for"), noticed, "it serves until it is known not to be ready")
	const release = 5 * time.Second // releaseTimeout of the command
	assert.Greater(t, time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second, seconds("unready-for")+seconds("drain-timeout")+release)
}
