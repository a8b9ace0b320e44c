package wire

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/internal/rig/servers"
)

// connections is how many redis-benchmark opens.
const connections = 50

// loader is the user of redis-benchmark in the private Redis. Its password would be seen in
// the list of processes, so it needs none, and may do nothing else.
const loader = "load"

// wantedRedis is the Redis beside the service. It does not save its data meanwhile.
var wantedRedis = servers.Wanted{Kind: servers.Redis, Settings: []string{"--save", "", "--user", loader, "on", "nopass", "~*", "+incr"}}

// benchmark runs redis-benchmark for n requests. Each is a command with the arguments.
func benchmark(ctx context.Context, addr string, login []string, clients, pipeline, n int, command ...string) (turn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return turn{}, err
	}
	args := append([]string{"-h", host, "-p", port, "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "--csv"}, login...)
	cmd := exec.CommandContext(ctx, "redis-benchmark", append(args, command...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return turn{}, fmt.Errorf("redis-benchmark: %w %s", err, out)
	}
	t, err := parseBenchmark(string(out))
	t.operations = float64(n)
	return t, err
}

// parseBenchmark reads the CSV form of redis-benchmark's report: a line of titles and one of
// figures, after lines that are no part of it.
func parseBenchmark(out string) (t turn, err error) {
	var table []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, `"`) {
			table = append(table, line)
		} else if strings.Contains(line, "rror") {
			return t, fmt.Errorf("redis-benchmark: %s", strings.TrimSpace(line))
		}
	}
	rows, err := csv.NewReader(strings.NewReader(strings.Join(table, ""))).ReadAll()
	if err != nil || len(rows) != 2 {
		return t, fmt.Errorf("redis-benchmark: want a line of titles and one of figures: %q", out)
	}
	for title, into := range map[string]*float64{"rps": &t.perSecond, "p50_latency_ms": &t.p50, "p99_latency_ms": &t.p99} {
		found := false
		for i := range rows[0] {
			if rows[0][i] == title {
				*into, err = strconv.ParseFloat(rows[1][i], 64)
				found = err == nil
			}
		}
		if !found {
			return t, fmt.Errorf("redis-benchmark: no figure of %s: %q", title, out)
		}
	}
	return t, nil
}

// redisCPU returns the processor time of a Redis.
func redisCPU(client *redis.Client) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		info, err := client.Info(ctx, "cpu").Result()
		if err != nil {
			return 0, err
		}
		var sum float64
		for _, name := range []string{"\nused_cpu_sys:", "\nused_cpu_user:"} {
			_, text, _ := strings.Cut(info, name)
			text, _, _ = strings.Cut(text, "\r")
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, fmt.Errorf("no processor time of Redis: %w", err)
			}
			sum += seconds
		}
		return time.Duration(sum * float64(time.Second)), nil
	}
}
