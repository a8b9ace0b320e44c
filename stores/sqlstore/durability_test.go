package sqlstore

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/stores"
)

// A standby is late unless each write waits for it. The senders are + a standby and - another receiver of the log.
func TestLateStandbys(t *testing.T) {
	for _, tt := range []struct {
		names, senders string
		all, late      int
	}{
		{"", "", 0, 0},
		{"", "-debezium\n-pg_basebackup", 0, 0},
		{"", "+a\n+b", 2, 2},
		{"a", "+a", 1, 0},
		{"a", "", 1, 0}, // it is away, and writes wait
		{"a", "+a\n+b", 2, 1},
		{"a, b", "+a", 2, 1},
		{"FIRST 1 (a, b)", "+a\n+b", 2, 1},
		{"FIRST 2 (a, b)", "+a\n+b", 2, 0},
		{"first 2(A,\"b\")", "+a\n+B", 2, 0},
		{"2 (a, b, c)", "+a\n+b\n+c", 3, 1},
		{"ANY 1 (a, b)", "+a\n+b", 2, 2},
		{"any 1 (a, b)", "+b", 2, 2},
		{"ANY 2 (a, b)", "+a\n+b", 2, 0},
		{"*", "+a", 1, 0},
		{"*", "+a\n+a", 2, 2},
		{"FIRST 2 (*)", "+a\n+b", 2, 0},
		{"debezium", "+a\n-debezium", 1, 1},
		{"a, debezium", "+a\n-debezium", 1, 0},
		{"debezium, a", "+a\n-debezium", 1, 1},
		{"ANY 1 (a, debezium)", "+a\n-debezium", 1, 1},
		{"ANY 1 (*)", "+a\n-debezium", 1, 1},
		{`"x y, ""z"""`, "+x y, \"z\"", 1, 0},
	} {
		all, late := lateStandbys(tt.names, tt.senders)
		assert.Equal(t, fmt.Sprint(tt.all, tt.late), fmt.Sprint(all, late), "%q with %q", tt.names, tt.senders)
	}
}

// A replica that takes over has all writes only if each write waits for it. The names are those of MySQL from 8.0.26 on.
func TestReplication(t *testing.T) {
	const semi = "rpl_semi_sync_source_"
	safe := map[string]string{"log_bin": "ON", semi + "enabled": "ON", semi + "status": "ON", semi + "clients": "1", semi + "timeout": "18446744073709551615",
		semi + "wait_point": "AFTER_SYNC", semi + "wait_no_replica": "ON", semi + "wait_for_replica_count": "1"}
	for _, tt := range []struct {
		name, value string // of a change, unless it is ""
		replicas    int
		risk        string
	}{
		{"", "", 1, ""},
		{"", "", -1, ""},
		{"", "", 2, "2 replicas, and each write waits for 1"},
		{semi + "wait_for_replica_count", "2", 2, ""},
		{semi + "clients", "2", -1, "2 replicas, and each write waits for 1"},
		{semi + "wait_point", "AFTER_COMMIT", 1, "AFTER_COMMIT"},
		{semi + "timeout", "10000", 1, "after that many milliseconds"},
		{semi + "wait_no_replica", "OFF", 1, "wait_no_replica is OFF"},
		{semi + "status", "OFF", 1, "wait for no replica now"},
		{semi + "enabled", "OFF", 1, "waits for none"},
		{semi + "enabled", "OFF", 0, "waits for none"}, // as clients says
		{"log_bin", "OFF", 0, ""},
		{"wsrep_on", "ON", 2, ""},
		{"group_replication_group_name", "g", 2, "BEFORE_ON_PRIMARY_FAILOVER"},
		{"read_only", "ON", 0, "connect to the primary"},
		{"innodb_read_only", "1", 0, "connect to the primary"},
		{"slaves_running", "1", 1, "follows another"},
	} {
		set := maps.Clone(safe)
		set[tt.name] = tt.value
		var found stores.Durability
		replication(set, tt.replicas, &found)
		assert.Contains(t, fmt.Sprint(found.Risks), tt.risk, "%s %s", tt.name, tt.value)
		assert.Equal(t, tt.risk == "", len(found.Risks) == 0, "%v", found.Risks)
	}
	for replicas, unknown := range map[int]int{-1: 1, 0: 0} {
		var found stores.Durability
		replication(map[string]string{"log_bin": "ON"}, replicas, &found)
		assert.Empty(t, found.Risks)
		assert.Len(t, found.Unknown, unknown)
	}
}
