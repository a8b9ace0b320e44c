package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"
)

// Warnings asks the server, in two round trips, for settings with which an acknowledged
// write can be lost, and returns a sentence on each that it finds: what it is, what it
// leads to, what to set. What the server does not tell, as many that are rented do
// not, is unknown, and a sentence says so. None is no proof, for nobody can see from
// inside what a disk does, or what takes over when the server fails.
//
// Its error is that of a server that does not answer, and wraps the driver's or the
// context's.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	found, err := within(ctx, func() ([]string, error) { return s.warnings(ctx) })
	if err != nil {
		return nil, s.fail("look at the server's settings", err)
	}
	return found, nil
}

func (s *Store) warnings(ctx context.Context) ([]string, error) {
	var server driver.Cmdable = s.client
	if cluster, ok := s.client.(*driver.ClusterClient); ok {
		shard, err := cluster.MasterForKey(ctx, s.key)
		if err != nil {
			return nil, err
		}
		server = shard
	}
	if err := server.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	var found []string
	pipe := server.Pipeline()
	names := []string{"appendonly", "appendfsync", "maxmemory", "maxmemory-policy"}
	answers := make([]*driver.MapStringStringCmd, len(names))
	for i, name := range names {
		answers[i] = pipe.ConfigGet(ctx, name) // one by one, as servers before 7 want it
	}
	info := pipe.Info(ctx, "replication")
	_, _ = pipe.Exec(ctx) // each answer has its own error

	set := map[string]string{}
	for i, name := range names {
		if value, ok := answers[i].Val()[name]; ok && answers[i].Err() == nil {
			set[name] = value
		} else {
			found = append(found, fmt.Sprintf("%s is unknown, for the server does not tell its settings: ask whoever runs it", name))
		}
	}
	for _, w := range []struct{ name, bad, text string }{
		{"appendonly", "no", "a crash loses all since the last snapshot; set it to yes"},
		{"appendfsync", "everysec", "a crash of the machine loses the last seconds; set it to always"},
		{"appendfsync", "no", "a crash of the machine loses the last writes; set it to always"},
	} {
		if set[w.name] == w.bad && (w.name == "appendonly" || set["appendonly"] != "no") {
			found = append(found, fmt.Sprintf("%s is %s: %s", w.name, w.bad, w.text))
		}
	}
	if p := set["maxmemory-policy"]; strings.HasPrefix(p, "allkeys-") {
		found = append(found, fmt.Sprintf("maxmemory-policy is %s with maxmemory %s: the cells can be evicted; set it to noeviction", p, set["maxmemory"]))
	}
	return append(found, s.replication(info)...), nil
}

func (s *Store) replication(info *driver.StringCmd) []string {
	if info.Err() != nil {
		return []string{"whether there are replicas is unknown, for the server does not tell: ask whoever runs it"}
	}
	fields := map[string]string{}
	for line := range strings.Lines(info.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	if fields["role"] != "master" {
		return []string{fmt.Sprintf("the server's role is %q: connect to the primary", fields["role"])}
	}
	n, _ := strconv.Atoi(fields["connected_slaves"])
	switch {
	case n < s.replicas:
		return []string{fmt.Sprintf("the server has %d replicas, and %d are to confirm each write: no write can succeed", n, s.replicas)}
	case n > 0 && s.replicas == 0:
		return []string{fmt.Sprintf("the server has %d replicas, and no write waits for them: a failover loses the last writes; use the option WithReplicas, or replicas in the URL", n)}
	}
	return nil
}
