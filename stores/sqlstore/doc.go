// Package sqlstore keeps cells in one table of a PostgreSQL, MySQL or MariaDB database,
// through [database/sql]. It has no driver in it: packages stores/postgres and
// stores/mysql add one, and this package serves callers with another driver.
//
// You need these names:
//
//   - [New]: a Store in a database of which the caller has a handle.
//   - [PostgreSQL], [MySQL]: the servers' dialects, with what to set to lose nothing.
//   - [Store.Schema]: the statement that makes the table, for a DBA.
//
// # What it needs
//
// The primary. A read from a replica is out of date. [Store.Read] asks the server
// for its role in the same statement, and refuses the answer of a PostgreSQL standby
// or a MySQL server that is read-only; a proxy in front of them must send it to the
// primary, all the same.
//
// One table, tickflake_cells unless [WithTable] names another, with one row for each
// cell. Never delete a row: with it goes the memory of the IDs that were issued. The
// first write makes the table if it is missing, for which the user needs the right to
// create it; or a DBA runs [Store.Schema] beforehand, and the user needs SELECT, INSERT
// and UPDATE on it. All processes of a fleet must see the same table: mind a
// search_path that differs between users.
//
// # To lose nothing
//
// A write that was acknowledged and is lost makes two processes issue the same IDs.
// That happens if the server acknowledges writes that it has not synced, and if a
// replica that lacks some takes over. [Store.Durability] looks for both. The docs of
// [PostgreSQL] and [MySQL] say what to set.
//
// A version grows by a random step of up to 2³², so that a server that loses writes, and
// takes others in their place, gives those other versions.
package sqlstore
