package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// MySQL returns the dialect of MySQL 5.7 and MariaDB 10.2, and later ones. The driver
// must take parameters as ?; number must return the server's number of the error that
// err wraps, or 0 if it wraps none.
//
// The connection's character set should be utf8mb4. Its autocommit must be on; where
// it is not, nothing is written and [ErrAutocommit] returned.
//
// InnoDB shows a write to others before it has synced it, unless it waits for
// the binary log. So that nobody takes such a write for a safe one, Read writes what it
// has found once more, by moving updated_at on by a microsecond, and
// returns when that is synced. Where the binary log is on and synced, it
// does without.
//
// # What to set
//
//   - innodb_flush_log_at_trx_commit = 1, as it is by default. With 0 or 2, a crash
//     loses the last second.
//   - sync_binlog = 1 if the binary log is on. MySQL's default is 1; MariaDB's is 0.
//   - If a replica may be promoted: semi-synchronous replication with
//     rpl_semi_sync_master_wait_point = AFTER_SYNC (MySQL: rpl_semi_sync_source_…) and
//     a time-out too long to ever be reached, or MySQL's group replication with
//     group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER. With asynchronous
//     replication, the last writes before a failover are lost.
//   - Galera: wsrep_sync_wait = 1 in the session if its reads may go to
//     another node than the writes.
//   - Replicas should have read_only on, by which they are told from the primary.
func MySQL(number func(err error) uint16) Dialect {
	// MariaDB 12 has names instead of numbers for the values of read_only.
	const state = `CASE WHEN @@autocommit = 0 THEN '` + stateNoAutocommit + `'
  WHEN CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') OR @@global.innodb_read_only THEN '` + stateNotPrimary + `'
  WHEN @@global.log_bin = 0 OR @@global.sync_binlog <> 1 THEN '` + stateUnsynced + `' ELSE '' END`
	is := func(want uint16) func(error) bool {
		return func(err error) bool { return number != nil && number(err) == want }
	}
	return Dialect{
		// By default, names that differ in case or an accent are the same.
		schema: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
  namespace  VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  node       INT NOT NULL,
  version    BIGINT NOT NULL,
  value      VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (namespace, node)
) ENGINE=InnoDB`,
		list: `SELECT node, version, value FROM TABLE_NAME WHERE namespace = ? ORDER BY node`,
		read: `SELECT ` + state + `, c.version, c.value
FROM (SELECT 1) AS here LEFT JOIN TABLE_NAME AS c ON c.namespace = ? AND c.node = ?`,
		// Not INSERT IGNORE, which passes over other errors, too, nor ON DUPLICATE KEY
		// UPDATE, whose count of rows depends on the connection's options.
		insert: `INSERT INTO TABLE_NAME (namespace, node, version, value) SELECT ?, ?, ?, ? FROM DUAL WHERE @@autocommit = 1`,
		update: `UPDATE TABLE_NAME SET version = ?, value = ?
WHERE namespace = ? AND node = ? AND version = ? AND @@autocommit = 1`,
		state: `SELECT ` + state,
		// It must change something, and nothing that matters.
		sync: `UPDATE TABLE_NAME SET updated_at = updated_at + INTERVAL 1 MICROSECOND
WHERE namespace = ? AND node = ? AND version = ? AND @@autocommit = 1`,
		guarded:    true,
		noTable:    is(1146), // ER_NO_SUCH_TABLE
		duplicate:  is(1062), // ER_DUP_ENTRY
		rolledBack: is(1213), // ER_LOCK_DEADLOCK, and Galera's for a conflict between servers
		warnings:   mysqlWarnings,
	}
}

func mysqlWarnings(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	set, err := mysqlSettings(ctx, db)
	if err != nil {
		return nil, err
	}
	var found []string
	if v := set["read_only"]; v != "OFF" && v != "" {
		found = append(found, "the server is read-only, as replicas are: connect to the primary")
	}
	if v := set["autocommit"]; v == "OFF" {
		found = append(found, "autocommit is OFF: nothing can be written; switch it on")
	}
	if v := set["innodb_flush_log_at_trx_commit"]; v != "1" {
		found = append(found, fmt.Sprintf("innodb_flush_log_at_trx_commit is %s: a crash loses the last writes; set it to 1", v))
	}
	if v := set["sync_binlog"]; set["log_bin"] == "ON" && v != "1" {
		found = append(found, fmt.Sprintf("sync_binlog is %s: after a crash, replicas can differ from the server in the last writes; set it to 1", v))
	}
	if wait, _ := strconv.Atoi(set["wsrep_sync_wait"]); set["wsrep_on"] == "ON" && wait&1 == 0 {
		found = append(found, "wsrep_sync_wait is 0 on a Galera cluster: reads from another node than the writes went to can be out of date; set it to 1 for these connections")
	}

	schema, name, ok := strings.Cut(table, ".")
	if !ok {
		schema, name = "", table
	}
	var engine sql.NullString
	err = db.QueryRowContext(ctx, `SELECT MAX(engine) FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?`, schema, name).Scan(&engine)
	if err != nil {
		return nil, err
	}
	if engine.Valid && !strings.EqualFold(engine.String, "InnoDB") {
		found = append(found, fmt.Sprintf("table %s has the engine %s: a crash can lose writes; ALTER TABLE … ENGINE=InnoDB", table, engine.String))
	}
	return found, nil
}

func mysqlSettings(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SHOW VARIABLES WHERE Variable_name IN ('autocommit', 'read_only',
  'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'wsrep_on', 'wsrep_sync_wait')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	set := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		set[name] = value
	}
	return set, rows.Err()
}
