package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// output collects the output of the example.
type output struct {
	mu      sync.Mutex
	b       strings.Builder
	serving chan struct{} // closed when the address has been printed
	once    sync.Once
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Write(b)
	if strings.Contains(o.b.String(), "/metrics\n") {
		o.once.Do(func() { close(o.serving) })
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start runs the example until the test ends, and returns its output and its address, such as
// "127.0.0.1:1234".
func start(t *testing.T, args ...string) (out *output, address string) {
	t.Helper()
	out = &output{serving: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), out) }()
	select {
	case <-out.serving:
	case err := <-ended:
		cancel()
		require.Failf(t, "it has ended", "%v", err)
	}
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	found := regexp.MustCompile(`http://([0-9.:]+)/metrics`).FindStringSubmatch(out.String())
	require.Len(t, found, 2, out.String())
	return out, found[1]
}

// get returns the body of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	return string(body)
}

// scrape returns the names of the metrics and of their labels.
func scrape(t *testing.T, address string) (metrics, labels map[string]bool) {
	t.Helper()
	metrics, labels = map[string]bool{}, map[string]bool{}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(get(t, "http://"+address+"/metrics")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		metrics[name] = true
		for _, l := range label.FindAllStringSubmatch(rest, -1) {
			labels[l[1]] = true
		}
	}
	return metrics, labels
}

func TestExample(t *testing.T) {
	out, address := start(t, "-traces", "-rate", "100000")
	for until := time.Now().Add(time.Minute); ; {
		metrics := get(t, "http://"+address+"/metrics")
		if regexp.MustCompile(`tickflake_generator_ids_total{.*tickflake_namespace="example"} [1-9]`).MatchString(metrics) &&
			strings.Contains(metrics, `tickflake_store_operation="swap",tickflake_store_outcome="ok"`) {
			break
		}
		require.True(t, time.Now().Before(until), metrics)
		time.Sleep(10 * time.Millisecond)
	}
	for _, span := range []string{"lock", "list", "swap"} {
		assert.Contains(t, out.String(), `"Name": "tickflake.store `+span+`"`)
	}
}
