// Package sqlstore keeps cells in one table of a PostgreSQL, MySQL or MariaDB database,
// through [database/sql]. It has no driver: packages stores/postgres and
// stores/mysql add one, and callers with another driver use this package.
//
// You need these names:
//
//   - [New]: a Store on the caller's own database handle.
//   - [PostgreSQL], [MySQL]: the servers' dialects, with the settings that lose nothing.
//   - [Store.Schema]: the statement that makes the table, for a DBA.
//
// # Requirements
//
// A connection to the primary. A read from a replica is out of date. A Read asks the server
// for its role in the same statement, and refuses the answer of a PostgreSQL standby
// or a MySQL server that is read-only; still, a proxy in front of them must send it
// to the primary.
//
// One table, with one row for each cell. The
// first write makes the table if it is missing, for which the user needs the right to
// create it. Or a DBA runs [Store.Schema] beforehand, and the user needs SELECT, INSERT
// and UPDATE on it. All processes of a fleet must see the same table: a
// search_path can differ between users. Durability of the traits, which stores.Open asks, refuses a
// table that was made by hand in a way that breaks a Store, as with updated_at in seconds or
// another unique index on MySQL, or without a unique key, and says which statement changes it.
//
// # Connections
//
// A statement whose context has ended is left to the driver. MySQL's closes the connection, and the field Most of a
// [github.com/tickflake/tickflake/stores/engine/dial.Dialer] bounds those on which the server still works. PostgreSQL's
// must ask the server to cancel the statement, as pgx and lib/pq do.
//
// # To lose nothing
//
// An acknowledged write is lost if the server acknowledges writes before it syncs them, or if a
// replica that lacks some takes over. stores.Open checks for both; ask [stores.CheckDurability] for a handle of your own. The docs of
// [PostgreSQL] and [MySQL] list the settings.
package sqlstore
