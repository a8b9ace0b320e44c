package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// MySQL returns the dialect of MySQL 5.7 and MariaDB 10.2, and later ones. The driver
// must take parameters as ?; number must return the server's number of the error that
// err wraps, that of MySQL's own client for an error of the driver, such as 2013 for a lost connection, or 0.
//
// The connections must have a strict sql_mode with NO_ENGINE_SUBSTITUTION and the character set utf8mb4, and with [Open] autocommit on.
//
// The server can show a write that is not safe yet: before the write is synced, and, with
// semi-synchronous replication, before a replica has it, if the server was restarted or the
// statement was killed. So Read writes the row once more, with updated_at a microsecond
// later, and returns when that write is synced and a replica has it.
//
// # What to set
//
//   - innodb_flush_log_at_trx_commit = 1, as it is by default. With 0, a killed server
//     loses the last second; with 2, a crash of the machine does.
//   - sync_binlog = 1 if the binary log is on. MySQL's default is 1; MariaDB's is 0.
//   - If a replica may be promoted: semi-synchronous replication with
//     rpl_semi_sync_master_wait_point = AFTER_SYNC (MySQL: rpl_semi_sync_source_…) and
//     a time-out too long to ever be reached, a day or more. It waits for one replica: of several, only one that has
//     all writes may be promoted. Or MySQL's group replication with
//     group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER. With asynchronous
//     replication, the last writes before a failover are lost.
//   - Before a replica is promoted, it must have applied all of its relay log. Never KILL a
//     statement that waits for a replica: the server then acknowledges a write that no replica has.
//   - Galera: wsrep_sync_wait = 1 in the session if its reads may go to
//     another node than the writes.
//   - Replicas should have read_only on, which distinguishes them from the primary.
func MySQL(number func(err error) uint16) Dialect {
	// MariaDB 12 has names instead of numbers for the values of read_only.
	const state = `CASE WHEN CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') OR @@global.innodb_read_only THEN '` + stateNotPrimary + `'
  ELSE '` + stateUnsynced + `' END`
	return Dialect{
		name:  "mysql",
		quote: func(name string) string { return "`" + name + "`" },
		// In the default collation, names that differ in case or an accent are the same.
		schema: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
  namespace  VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  cell       VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  version    BIGINT NOT NULL,
  value      VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (namespace, cell)
) ENGINE=InnoDB`,
		list: `SELECT cell, version, value FROM TABLE_NAME
WHERE namespace = ? AND cell >= ? AND cell < ? ORDER BY cell LIMIT ?`,
		read: `SELECT ` + state + `, c.version, c.value
FROM (SELECT 1) AS here LEFT JOIN TABLE_NAME AS c ON c.namespace = ? AND c.cell = ?`,
		// INSERT IGNORE would also ignore other errors, and the count of rows of ON DUPLICATE
		// KEY UPDATE depends on the connection's options.
		insert: `INSERT INTO TABLE_NAME (namespace, cell, version, value) VALUES (?, ?, ?, ?)`,
		update: `UPDATE TABLE_NAME SET version = ?, value = ?
WHERE namespace = ? AND cell = ? AND version = ? AND OCTET_LENGTH(value) <= 1024`,
		state: `SELECT ` + state,
		// It must change the row, but neither version nor value.
		sync: `UPDATE TABLE_NAME SET updated_at = updated_at + INTERVAL 1 MICROSECOND
WHERE namespace = ? AND cell = ? AND version = ?`,
		says: func(err error) error {
			if err == nil {
				return nil
			}
			return mysqlErrors[number(err)]
		},
		begins:     true,
		durability: mysqlDurability,
	}
}

// mysqlErrors is by the server's number. Those from 2000 to 2999 are a client's own.
var mysqlErrors = mysqlTable(map[error][]uint16{
	errNoTable:    {1146},       // ER_NO_SUCH_TABLE
	errDuplicate:  {1062},       // ER_DUP_ENTRY
	errRolledBack: {1213, 1205}, // ER_LOCK_DEADLOCK, and Galera's for a conflict between servers; ER_LOCK_WAIT_TIMEOUT
	// ER_HOST_NOT_PRIVILEGED; access denied to the database, the user, the table, the column,
	// a right, and to a user without a password; a password that must be changed; a locked user;
	// a blocked host; an unknown way to log in; no TLS; CR_AUTH_PLUGIN_CANNOT_LOAD
	errDenied: {1130, 1044, 1045, 1142, 1143, 1227, 1698, 1820, 1862, 3118, 4151, 1129, 1251, 1524, 3159, 2059},
	// ER_OPTION_PREVENTS_STATEMENT, and a table or a server that is read-only
	errNotPrimary: {1290, 1036, 1836},
	errReadOnly:   {1792}, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	// ER_BAD_DB_ERROR, and no database at all; an unknown column, and one without a default;
	// values that do not fit into a column, and characters that do not; a view; a syntax error;
	// a system variable that is unknown, read-only or global, or does not take the value
	errOther: {1049, 1046, 1054, 1364, 1264, 1265, 1366, 1406, 1267, 1288, 1347, 1471, 1064, 1193, 1229, 1231, 1232, 1238},
	// ER_SERVER_SHUTDOWN, ER_NORMAL_SHUTDOWN; errors and time-outs of the network; a killed or idle connection, or that of a
	// proxy; CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_MALFORMED_PACKET
	errEnded: {1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031, 2006, 2013, 2027},
	errFull:  {1040, 1203, 1226}, // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
	// ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT, ER_LOCK_NOWAIT of MySQL
	errGivenUp: {1317, 1969, 3024, 3572},
	// a full disk, no memory twice, no threads or memory, a full table, no thread, a full table of locks
	errExhausted: {1021, 1037, 1038, 1041, 1114, 1135, 1206},
	errNoServer:  {1047, 9001}, // of a Galera server without a majority, and of ProxySQL
})

func mysqlTable(numbers map[error][]uint16) map[uint16]error {
	table := make(map[uint16]error)
	for err, all := range numbers {
		for _, number := range all {
			table[number] = err
		}
	}
	return table
}

// mysqlTableOf returns the engine of the table, and whether no key keeps two processes from making the same cell.
const mysqlTableOf = `SELECT COALESCE(t.engine, ''), NOT EXISTS (
  SELECT 1 FROM information_schema.statistics AS k WHERE k.table_schema = t.table_schema AND k.table_name = t.table_name
  GROUP BY k.index_name HAVING MAX(k.non_unique) = 0 AND COUNT(k.sub_part) = 0 AND COUNT(*) = 2
  AND SUM(LOWER(k.column_name) IN ('namespace', 'cell')) = 2)
FROM information_schema.tables AS t WHERE t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ?`

func mysqlDurability(ctx context.Context, db *sql.DB, d Dialect) (stores.Durability, error) {
	var found stores.Durability
	set, err := mysqlSettings(ctx, db)
	if err != nil {
		return found, err
	}
	replicas, err := mysqlReplicas(ctx, db, d, set)
	if err != nil {
		return found, err
	}
	switch v := set["innodb_flush_log_at_trx_commit"]; v {
	case "1", "3": // MariaDB's 3 syncs once more
	case "0":
		found.Forgets = append(found.Forgets, "innodb_flush_log_at_trx_commit is 0, so that a killed server loses the last second: set it to 1")
	default:
		found.Risks = append(found.Risks, fmt.Sprintf("innodb_flush_log_at_trx_commit is %s, so that a crash of the machine loses the last writes: set it to 1", v))
	}
	if v := set["sync_binlog"]; set["log_bin"] == "ON" && v != "1" {
		found.Risks = append(found.Risks, fmt.Sprintf("sync_binlog is %s, so that replicas can lack the last writes after a crash of the machine: set it to 1", v))
	}
	if wait, _ := strconv.Atoi(set["wsrep_sync_wait"]); set["wsrep_on"] == "ON" && wait&1 == 0 {
		found.Risks = append(found.Risks, "wsrep_sync_wait is 0 on a Galera cluster, so that a Read from another node than the last Swap can be out of date: set it to 1 for these connections")
	}
	replication(set, replicas, &found)

	schema, name, ok := strings.Cut(strings.ReplaceAll(d.table, "`", ""), ".")
	if !ok {
		schema, name = "", schema
	}
	var engine string
	var keyless bool
	err = db.QueryRowContext(ctx, mysqlTableOf, schema, name).Scan(&engine, &keyless)
	switch {
	case errors.Is(err, sql.ErrNoRows): // the first Swap makes it
		return found, nil
	case err != nil:
		return found, err
	case keyless:
		return found, fmt.Errorf("%w: ALTER TABLE %s ADD UNIQUE (namespace, cell)", errKeyless, d.table)
	case !strings.EqualFold(engine, "InnoDB"):
		found.Forgets = append(found.Forgets, fmt.Sprintf("table %s has the engine %s, so that a killed server can lose writes: ALTER TABLE %s ENGINE=InnoDB", d.table, engine, d.table))
	}
	return found, nil
}

// mysqlSettings returns what every user may see of the settings and the status, by names in lower case.
func mysqlSettings(ctx context.Context, db *sql.DB) (map[string]string, error) {
	set := make(map[string]string)
	for what, names := range map[string]string{
		"VARIABLES": `'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'wsrep_on', 'wsrep_sync_wait',
  'read_only', 'innodb_read_only', 'group_replication_group_name', 'group_replication_consistency'`,
		"GLOBAL STATUS": `'slaves_connected', 'slaves_running'`, // MariaDB's
	} {
		rows, err := db.QueryContext(ctx, "SHOW "+what+" WHERE Variable_name IN ("+names+") OR Variable_name LIKE 'rpl_semi_sync%'")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var value sql.NullString
			if err := rows.Scan(&name, &value); err != nil {
				return nil, err
			}
			set[strings.ToLower(name)] = value.String
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// mysqlReplicas counts those that are connected, or returns -1 if the user may not see them. MySQL shows them for a
// right that the store does not need.
func mysqlReplicas(ctx context.Context, db *sql.DB, d Dialect, set map[string]string) (n int, err error) {
	if connected, ok := set["slaves_connected"]; ok || set["log_bin"] != "ON" {
		n, _ = strconv.Atoi(connected)
		return n, nil
	}
	for _, show := range []string{"SHOW REPLICAS", "SHOW SLAVE HOSTS"} { // the former since 8.0.22
		n, err = 0, nil
		rows, failed := db.QueryContext(ctx, show)
		if failed == nil {
			for rows.Next() {
				n++
			}
			return n, errors.Join(rows.Err(), rows.Close())
		}
		if err = failed; !errors.Is(d.says(err), stores.Permanent) {
			return 0, err
		}
	}
	return -1, nil
}

// replication judges whether a replica that takes over has all acknowledged writes.
func replication(set map[string]string, replicas int, found *stores.Durability) {
	risk := func(format string, args ...any) { found.Risks = append(found.Risks, fmt.Sprintf(format, args...)) }
	on := func(name string) bool { return !slices.Contains([]string{"", "0", "OFF"}, set[name]) }
	count := func(name string) int { n, _ := strconv.Atoi(set[name]); return n }
	semi, replica := "rpl_semi_sync_master_", "slave"
	if _, ok := set["rpl_semi_sync_source_enabled"]; ok {
		semi, replica = "rpl_semi_sync_source_", "replica"
	}
	waits := max(1, count(semi+"wait_for_"+replica+"_count"))
	if n := count(semi + "clients"); n > 0 { // every user may see them
		replicas = max(replicas, n)
	}
	const safe = "ON, its timeout to a day or more, and its wait_point to AFTER_SYNC"
	switch {
	case on("read_only"), on("innodb_read_only"):
		risk("the server is read-only, as replicas are, and answers neither Read nor Swap: connect to the primary")
	case on("wsrep_on"), set["log_bin"] != "ON": // Galera, or no replica can follow
	case set["group_replication_group_name"] != "":
		if consistency := set["group_replication_consistency"]; consistency == "EVENTUAL" || consistency == "" {
			risk("group_replication_consistency is %q, so that a new primary answers before it has applied all writes: set it to BEFORE_ON_PRIMARY_FAILOVER", consistency)
		}
	case !on(semi+"enabled") && replicas < 0:
		found.Unknown = append(found.Unknown, "whether the server has replicas, which a failover could make the primary without the last writes, is unknown, "+
			"because the user may not see them: grant it REPLICATION SLAVE, ask the operator, or set "+semi+"enabled to "+safe)
	case !on(semi + "enabled"):
		if replicas > 0 {
			risk("the server has %d replicas, or other readers of its binary log, and waits for none, so that a failover loses the last writes: set %senabled to %s", replicas, semi, safe)
		}
	default:
		if point := set[semi+"wait_point"]; point != "AFTER_SYNC" {
			risk("%swait_point is %q, so that others see a write before a replica has it, and a failover loses it: set it to AFTER_SYNC", semi, point)
		}
		if timeout := count(semi + "timeout"); timeout < 86_400_000 {
			risk("%stimeout is %d, so that after that many milliseconds without a replica writes wait for none, and a failover loses them: set it to 86400000, a day, or more", semi, timeout)
		}
		if !on(semi + "wait_no_" + replica) {
			risk("%swait_no_%s is OFF, so that writes wait for no replica while too few are connected, and a failover loses them: set it to ON", semi, replica)
		}
		if !on(semi + "status") {
			risk("%sstatus is OFF, so that writes wait for no replica now, and a failover loses them: look at the replicas", semi)
		}
		if replicas > waits {
			risk("the server has %d replicas, and each write waits for %d of them, so that a failover to another loses the last writes: promote only one that has all, or keep no other", replicas, waits)
		}
	}
	if on("slaves_running") && !on("read_only") {
		risk("the server takes writes and follows another, which lacks them: connect to the primary")
	}
}
