package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
		// A table made by hand may have a collation with another order, or no unique key, without which the server refuses the insert.
		list: `SELECT cell, version, value FROM TABLE_NAME
WHERE namespace = $1 AND cell COLLATE "C" >= $2 AND cell COLLATE "C" < $3 ORDER BY cell COLLATE "C" LIMIT $4::bigint`,
		read: `SELECT ` + state + `, c.version, c.value
FROM (SELECT 1) AS here LEFT JOIN TABLE_NAME AS c ON c.namespace = $1 AND c.cell = $2`,
		insert: durable + `INSERT INTO TABLE_NAME (namespace, cell, version, value)
SELECT $1::text, $2::text, $3::bigint, $4::text FROM durable WHERE durable.level IS NOT NULL
ON CONFLICT (namespace, cell) DO NOTHING`,
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

// postgresErrors is by SQLSTATE, and by its class where no other line has it.
var postgresErrors = map[string]error{
	"42P01": errNoTable,
	"40001": errRolledBack, "40P01": errRolledBack, // serialization failure, deadlock
	"42501": errDenied,   // insufficient privilege
	"28":    errDenied,   // invalid authorization
	"25006": errReadOnly, // read-only transaction

	// A value that does not fit, a violated constraint, no such database or schema, or not any more; columns, types and kinds
	// of table that do not fit the statement; and a feature that the server lacks, or lacks for this table.
	"22": errOther, "23": errOther, "3D": errOther, "3F": errOther, "57P04": errOther, "42": errOther, "0A": errOther,

	"57P03": errStarts,                                      // cannot connect now
	"57P01": errEnded, "57P02": errEnded, "57P05": errEnded, // an administrator, a crash of another session, a time-out of idle ones
	"53300": errFull,
	"55P03": errGivenUp, "57014": errGivenUp, // a lock is not available; cancelled
	"53": errExhausted, "58": errExhausted, // insufficient resources; an error of the system, such as of its disk
	"08": errNoServer, // PgBouncer's
}

func postgresSays(err error) error {
	state := sqlState(err)
	if len(state) != 5 {
		return nil
	}
	return cmp.Or(postgresErrors[state], postgresErrors[state[:2]])
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

func postgresDurability(ctx context.Context, db *sql.DB, d Dialect) (stores.Durability, error) {
	var found stores.Durability
	var version, fsync, fullPages, names, senders string
	var standby, unlogged bool
	err := db.QueryRowContext(ctx, `SELECT version()`).Scan(&version) // others lack the settings
	for name, sign := range map[string]string{"CockroachDB": "CockroachDB", "YugabyteDB": "-YB-"} {
		if strings.Contains(version, sign) {
			err = fmt.Errorf("%s: %w", name, errForeign)
		}
	}
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
  current_setting('synchronous_standby_names'), pg_is_in_recovery(), `+postgresSenders+`,
  COALESCE((SELECT relpersistence <> 'p' FROM pg_class WHERE oid = to_regclass($1::text)), false)`, d.table).
			Scan(&fsync, &fullPages, &names, &standby, &senders, &unlogged)
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
	standbys, late := lateStandbys(names, senders)
	switch {
	case standby:
		found.Risks = append(found.Risks, "the server is a standby, which answers neither Read nor Swap: connect to the primary")
	case late > 0:
		found.Risks = append(found.Risks, fmt.Sprintf("synchronous_standby_names is '%s', so that %d of %d standbys can lack acknowledged writes, which a failover to one of them loses: "+
			"wait for all that can be promoted, as FIRST %d (NAME, …) does, or let a manager promote only one that has them", names, late, standbys, standbys))
	}
	return found, nil
}

// postgresSenders has a line for each process that sends the log: + for a standby, or - for another receiver, and its name.
// What is connected to a database receives changes of rows. Every user sees the name and the database.
const postgresSenders = `COALESCE((SELECT string_agg(CASE WHEN a.datid IS NOT NULL OR r.state = 'backup'
    OR r.application_name IN ('pg_basebackup', 'pg_receivewal') THEN '-' ELSE '+' END || r.application_name, chr(10))
  FROM pg_stat_replication AS r LEFT JOIN pg_stat_activity AS a ON a.pid = r.pid), '')`

var (
	synchronousNames = regexp.MustCompile(`(?is)^\s*(?:(FIRST|ANY)?\s*(\d+)\s*\((.*)\)\s*|(.*))$`)
	synchronousName  = regexp.MustCompile(`"(?:[^"]|"")*"|[^\s,"]+`)
)

// lateStandbys counts the standbys that are connected, or named in synchronous_standby_names, and those of them that can lack a
// write that the server has acknowledged. senders are those of postgresSenders: the server waits for other receivers,
// too, and may then not wait for a standby.
func lateStandbys(names, senders string) (all, late int) {
	parts := synchronousNames.FindStringSubmatch(names)
	listed := synchronousName.FindAllString(cmp.Or(parts[3], parts[4]), -1)
	for i, name := range listed {
		if inner, ok := strings.CutPrefix(name, `"`); ok {
			name = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
		}
		listed[i] = strings.ToLower(name) // as the server compares them
	}
	waits, _ := strconv.Atoi(cmp.Or(parts[2], "1"))
	first := !strings.EqualFold(parts[1], "ANY")
	rank := func(name string) int { // the lower, the sooner it is waited for; 0 is never
		return 1 + slices.IndexFunc(listed, func(l string) bool { return l == "*" || l == strings.ToLower(name) })
	}
	receivers := strings.FieldsFunc(senders, func(r rune) bool { return r == '\n' })
	for _, name := range listed {
		if name != "*" && !slices.ContainsFunc(receivers, func(r string) bool { return strings.EqualFold(r[1:], name) }) {
			receivers = append(receivers, "+"+name) // which is away
		}
	}
	for _, standby := range receivers {
		if standby[0] != '+' {
			continue
		}
		all++
		own, before := rank(standby[1:]), 0
		for _, r := range receivers {
			if at := rank(r[1:]); at > 0 && (!first || at <= own) {
				before++
			}
		}
		if own == 0 || before > waits {
			late++
		}
	}
	return all, late
}
