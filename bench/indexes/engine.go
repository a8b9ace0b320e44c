package indexes

import (
	"context"
	"database/sql"

	"github.com/tickflake/tickflake/integration/servers"
)

// engine has the differences between the servers.
type engine struct {
	kind        servers.Kind
	id          string // in those of tables and charts
	column      int    // of key.columns
	placeholder string // of the parameter with the number n
	logQuery    string // asks for the position in the log, in bytes
	size        func(ctx context.Context, db *sql.DB, table string) (size, error)
}

// size is that of a table at the end.
type size struct {
	index float64 // bytes of the primary key's index, or below 0 if that is the table itself
	whole float64 // bytes of the table with its index
}

func engines() []engine {
	return []engine{{
		kind: servers.PostgreSQL, id: "postgresql",
		column: 0, placeholder: "$n",
		logQuery: "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint",
		size:     sizeInPostgreSQL,
	}, {
		kind: servers.MariaDB, id: "mariadb",
		column: 1, placeholder: "?",
		logQuery: "SELECT CAST(VARIABLE_VALUE AS unsigned) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_LSN_CURRENT'",
		size:     sizeInMariaDB,
	}}
}

func sizeInPostgreSQL(ctx context.Context, db *sql.DB, table string) (s size, err error) {
	return s, db.QueryRowContext(ctx, "SELECT pg_relation_size($1::text || '_pkey'), pg_total_relation_size($1::text)", table).Scan(&s.index, &s.whole)
}

func sizeInMariaDB(ctx context.Context, db *sql.DB, table string) (size, error) {
	s := size{index: -1}
	if _, err := db.ExecContext(ctx, "ANALYZE TABLE "+table); err != nil {
		return size{}, err
	}
	return s, db.QueryRowContext(ctx, "SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats "+
		"WHERE database_name = DATABASE() AND table_name = ? AND index_name = 'PRIMARY' AND stat_name = 'size'", table).Scan(&s.whole)
}
