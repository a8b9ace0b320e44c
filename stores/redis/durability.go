package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/stores"
)

// ask asks the server for its settings, by CONFIG GET and INFO, in two round trips.
// Settings that neither tells, as on many rented servers, are unknown.
//
// With appendfsync everysec or no, the process of the server can be killed: the system
// has what was acknowledged. (While a sync takes longer than a second, everysec
// acknowledges up to two seconds of writes that the system has not got.) So both are
// risks, and appendonly no forgets. So do a maxmemory with an allkeys-… policy, which
// evicts cells while the server runs, and a replica that takes writes.
func (t *texts) ask(ctx context.Context) (found stores.Durability, err error) {
	if err := t.client.Ping(ctx).Err(); err != nil {
		return found, err
	}
	pipe := t.client.Pipeline()
	fsync, info, cells := pipe.ConfigGet(ctx, "appendfsync"), pipe.Info(ctx), pipe.HGet(ctx, t.hash, "")
	commands, _ := pipe.Exec(ctx) // each answer has its own error
	for _, command := range commands {
		// Only the server's refusal leaves a setting unknown.
		err := command.Err()
		if _, refusal := errors.AsType[driver.Error](err); err != nil && (!refusal || driver.IsLoadingError(err)) {
			return found, err
		}
	}
	facts := map[string]string{}
	for line := range strings.Lines(info.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		facts[name] = value
	}
	if _, moved := driver.IsMovedError(cells.Err()); moved {
		return found, cells.Err()
	}
	if facts["cluster_enabled"] == "1" {
		found.Risks = append(found.Risks, "the server is one of a cluster, and the store fails when another one gets the cells: use a server that is in none")
	}
	// Many rented servers refuse CONFIG, and INFO tells all but appendfsync.
	set := map[string]string{
		"appendonly":  map[string]string{"0": "no", "1": "yes"}[facts["aof_enabled"]],
		"appendfsync": fsync.Val()["appendfsync"], "maxmemory": facts["maxmemory"], "maxmemory-policy": facts["maxmemory_policy"],
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] == "" {
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
		if bytes, _ := strconv.ParseUint(set["maxmemory"], 10, 64); bytes > 0 {
			found.Forgets = append(found.Forgets, text)
		} else {
			found.Risks = append(found.Risks, text)
		}
	}
	t.replication(facts, &found)
	return found, nil
}

// replication judges the lines of the command INFO.
func (t *texts) replication(facts map[string]string, found *stores.Durability) {
	n, err := strconv.Atoi(facts["connected_slaves"])
	switch {
	case err != nil:
		found.Unknown = append(found.Unknown, "the number of replicas is unknown, because the server does not tell: ask its operator")
	case facts["role"] != "master" && facts["slave_read_only"] == "0":
		found.Forgets = append(found.Forgets, "the server is a replica that takes writes, and loses them when it next syncs with its primary: connect to the primary")
	case facts["role"] != "master":
		found.Risks = append(found.Risks, fmt.Sprintf("the server's role is %q: connect to the primary", facts["role"]))
	case n < t.replicas:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and %d are to confirm each write, so that no write can succeed: add replicas, or ask for no more than can be promoted", n, t.replicas))
	case n > t.replicas:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and a write waits for %d of them, so that a failover to another loses the last writes: "+
			"set replicas, in the URL or in redis.New, to the number of those that can be promoted, %[1]d if all can", n, t.replicas))
	}
}
