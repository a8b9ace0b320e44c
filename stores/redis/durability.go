package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/stores"
)

// Durability asks the server for its settings, in two round trips. Settings that the
// server does not report, as with many rented servers, are unknown.
//
// With appendfsync everysec or no, acknowledged writes survive when the process of the
// server is killed: the operating system has them. (While a sync takes longer than a
// second, everysec acknowledges up to two seconds of writes that the operating system does
// not have.) So both are risks, and appendonly no forgets.
func (s *Store) Durability(ctx context.Context) (stores.Durability, error) {
	promises, err := stores.Wait(ctx, func() (stores.Durability, error) { return s.durability(ctx) })
	if err != nil {
		return stores.Durability{}, stores.Failed(ctx, "redis", "ask", "settings", "", err)
	}
	return promises, nil
}

func (s *Store) durability(ctx context.Context) (found stores.Durability, err error) {
	var server driver.Cmdable = s.client
	if cluster, ok := s.client.(*driver.ClusterClient); ok {
		if server, err = cluster.MasterForKey(ctx, s.hash); err != nil {
			return found, err
		}
	}
	if err := server.Ping(ctx).Err(); err != nil {
		return found, err
	}
	pipe := server.Pipeline()
	names := []string{"appendonly", "appendfsync", "maxmemory", "maxmemory-policy"}
	answers := make([]*driver.MapStringStringCmd, len(names))
	for i, name := range names {
		answers[i] = pipe.ConfigGet(ctx, name) // servers before 7 take one name
	}
	info := pipe.Info(ctx, "replication")
	_, _ = pipe.Exec(ctx) // each answer has its own error

	set := map[string]string{}
	for i, name := range names {
		if value, ok := answers[i].Val()[name]; ok && answers[i].Err() == nil {
			set[name] = value
		} else {
			found.Unknown = append(found.Unknown, fmt.Sprintf("%s is unknown, because the server does not tell its settings: ask its operator", name))
		}
	}
	if set["appendonly"] == "no" {
		found.Forgets = append(found.Forgets, "appendonly is no, so that a killed server loses all writes since the last snapshot: set it to yes (CONFIG SET appendonly yes, and in redis.conf)")
	} else if fsync := set["appendfsync"]; fsync == "everysec" || fsync == "no" {
		found.Risks = append(found.Risks, fmt.Sprintf("appendfsync is %s, so that a crash of the machine loses the last seconds: set it to always", fsync))
	}
	if policy := set["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") {
		text := fmt.Sprintf("maxmemory-policy is %s with maxmemory %s, so that the cells can be evicted: set it to noeviction", policy, set["maxmemory"])
		found.Risks = append(found.Risks, text)
	}
	s.replication(info, &found)
	return found, nil
}

func (s *Store) replication(info *driver.StringCmd, found *stores.Durability) {
	if info.Err() != nil {
		found.Unknown = append(found.Unknown, "the number of replicas is unknown, because the server does not tell: ask its operator")
		return
	}
	fields := map[string]string{}
	for line := range strings.Lines(info.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	n, _ := strconv.Atoi(fields["connected_slaves"])
	switch {
	case fields["role"] != "master":
		found.Risks = append(found.Risks, fmt.Sprintf("the server's role is %q: connect to the primary", fields["role"]))
	case n < s.replicas:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and %d are to confirm each write, so that no write can succeed: add replicas, or ask for fewer", n, s.replicas))
	case n > 0 && s.replicas == 0:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and no write waits for them, so that a failover loses the last writes: set replicas=1 in the URL, or WithReplicas", n))
	}
}
