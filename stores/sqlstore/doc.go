// Package sqlstore keeps cells in one table of a PostgreSQL, MySQL or MariaDB database, through [database/sql]. It has no
// driver: packages stores/postgres and stores/mysql add one each, and have the URLs. Programs import one of these.
//
// You need these names:
//
//   - [PostgreSQL], [MySQL]: the servers' dialects, with the settings that lose nothing.
//   - [Open], [New]: a Store for the URL of an engine, or for a pool of the caller's.
//
// # Requirements
//
// A connection to the primary. A read from a replica is out of date. A Read asks the server
// for its role in the same statement, and refuses the answer of a PostgreSQL standby
// or a MySQL server that is read-only; still, a proxy in front of them must send it
// to the primary.
//
// One table, with one row for each cell. The first write makes the table if it is missing, for which the user needs the right
// to create it. Without that right, the error has the statement for a DBA to run, and the user needs SELECT, INSERT
// and UPDATE on the table. All processes of a fleet must see the same table: a
// search_path can differ between users. A table that was made by hand and breaks a Store is refused: without a unique key
// by stores.Open or when a cell is made, and with narrower columns when a cell does not fit.
//
// # To lose nothing
//
// An acknowledged write is lost if the server acknowledges writes before it syncs them, or if a
// replica that lacks some takes over. stores.Open checks for both. The docs of
// [PostgreSQL] and [MySQL] list the settings.
package sqlstore
