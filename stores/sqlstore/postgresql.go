package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// PostgreSQL returns the dialect of PostgreSQL 9.5 and later. The driver must take
// parameters as $1, and its errors must have a method SQLState() string, as those of
// pgx and lib/pq do.
//
// # What to set
//
// Each write is committed with synchronous_commit = on even where the database, role
// or session has it off; where it is on or remote_apply, it is left unchanged. The
// other settings are the server's:
//
//   - fsync and full_page_writes on, as they are by default.
//   - If a standby may be promoted: synchronous_standby_names must name it. If each of several
//     may be, it must wait for all of them, as FIRST 2 (a, b) does; with FIRST 1 or ANY 1, the
//     standby that is promoted may lack the last writes, as with asynchronous replication.
//     With a manager such as Patroni, which promotes one that has them: synchronous_mode on.
//   - Never cancel a statement that waits for its standby (pg_cancel_backend), and never empty
//     synchronous_standby_names while the standby may be promoted: the server then
//     acknowledges writes that no standby has.
//   - Without a synchronous standby, the old primary must be stopped for good before a
//     standby is promoted (fencing), or it continues to accept writes. With one, the old
//     primary answers nothing.
//
// While synchronous_standby_names is set, Read writes the row once more, and returns when
// the standby has it: a write that waits for the standby becomes visible when its client
// gives up or the server is restarted.
func PostgreSQL() Dialect {
	// It is in one statement with the write, since SET LOCAL would need a transaction of
	// four round trips. The setting lasts until the statement's own commit is done.
	const durable = `WITH durable AS (
  SELECT CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply') THEN 'kept'
    ELSE set_config('synchronous_commit', 'on', true) END AS level)
`
	const state = `CASE WHEN pg_is_in_recovery() THEN '` + stateNotPrimary + `'
  WHEN current_setting('synchronous_standby_names') <> '' THEN '` + stateUnsynced + `' ELSE '' END`
	return Dialect{
		name: "postgres",
		// Without the quotes, capitals would be small letters.
		quote: func(name string) string { return `"` + strings.ToLower(name) + `"` },
		schema: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
  namespace  varchar(48) COLLATE "C" NOT NULL,
  cell       varchar(100) COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  value      text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (namespace, cell)
)`,
		// A table made by hand may have a collation with another order.
		list: `SELECT cell, version, value FROM TABLE_NAME
WHERE namespace = $1 AND cell COLLATE "C" >= $2 AND cell COLLATE "C" < $3 ORDER BY cell COLLATE "C" LIMIT $4::bigint`,
		read: `SELECT ` + state + `, c.version, c.value
FROM (SELECT 1) AS here LEFT JOIN TABLE_NAME AS c ON c.namespace = $1 AND c.cell = $2`,
		insert: durable + `INSERT INTO TABLE_NAME (namespace, cell, version, value)
SELECT $1::text, $2::text, $3::bigint, $4::text FROM durable WHERE durable.level IS NOT NULL
ON CONFLICT DO NOTHING`,
		update: durable + `UPDATE TABLE_NAME AS c SET version = $1, value = $2, updated_at = now() FROM durable
WHERE durable.level IS NOT NULL AND c.namespace = $3 AND c.cell = $4 AND c.version = $5
  AND octet_length(c.value) <= 1024`,
		state: `SELECT ` + state,
		sync: durable + `UPDATE TABLE_NAME AS c SET updated_at = now() FROM durable
WHERE durable.level IS NOT NULL AND c.namespace = $1 AND c.cell = $2 AND c.version = $3`,
		says:       postgresSays,
		durability: postgresDurability,
	}
}

func postgresSays(err error) error {
	state := sqlState(err)
	if len(state) != 5 {
		return nil
	}
	switch state {
	case "42P01":
		return errNoTable
	case "40001", "40P01": // serialization failure, deadlock
		return errRolledBack
	case "42501": // insufficient privilege
		return errDenied
	case "25006": // read-only transaction
		return ErrNotPrimary
	}
	switch state[:2] {
	case "28": // invalid authorization
		return errDenied
	// A value that does not fit, a violated constraint, no such database or schema;
	// columns, types and kinds of table that do not fit the statement; and a feature that the
	// server lacks, or lacks for this table.
	case "22", "23", "3D", "3F", "42", "0A":
		return errOther
	}
	return nil
}

func sqlState(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState()
	}
	return ""
}

// postgresUnfit looks for the key that keeps two processes from making the same cell.
const postgresUnfit = `SELECT '', '' FROM pg_class AS t WHERE t.oid = to_regclass($1::text) AND NOT EXISTS (
  SELECT FROM pg_index AS i WHERE i.indrelid = t.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indnatts = 2
  AND (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = t.oid AND a.attnum = ANY (i.indkey) AND a.attname IN ('namespace', 'cell')) = 2)`

func postgresDurability(ctx context.Context, db *sql.DB, d Dialect) (stores.Durability, error) {
	var fsync, fullPages, standbys string
	var replicas int
	var unlogged bool
	err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
  current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication),
  COALESCE((SELECT relpersistence <> 'p' FROM pg_class WHERE oid = to_regclass($1::text)), false)`, d.table).
		Scan(&fsync, &fullPages, &standbys, &replicas, &unlogged)
	var found stores.Durability
	if err == nil {
		err = d.unfit(ctx, db, postgresUnfit, d.table)
	}
	if err != nil {
		return found, err
	}
	if unlogged {
		found.Forgets = append(found.Forgets, fmt.Sprintf("table %s is unlogged or temporary, so that a killed server empties it: ALTER TABLE %s SET LOGGED", d.table, d.table))
	}
	for _, setting := range [][2]string{{"fsync", fsync}, {"full_page_writes", fullPages}} {
		if setting[1] != "on" {
			found.Risks = append(found.Risks, fmt.Sprintf("%s is %s, so that a crash of the machine can lose or damage all data: set it to on", setting[0], setting[1]))
		}
	}
	if replicas > 0 && standbys == "" {
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas and none is synchronous, so that a failover loses the last writes: set synchronous_standby_names", replicas))
	}
	return found, nil
}
