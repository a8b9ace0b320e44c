// Package sqlstore keeps the cells of a fleet in one table of a PostgreSQL, MySQL or
// MariaDB database, through [database/sql].
//
// It has no driver in it. Programs that use one of the common drivers want
// stores/postgres or stores/mysql, which are this package with the driver's part
// filled in; this one is for another driver.
//
// # What it needs
//
// The primary. A read from a replica is out of date. [Store.Read] asks the server
// what it is in the same statement, and refuses the answer of a PostgreSQL standby
// or a MySQL server that is read-only; a proxy in front of them must send it to the
// primary, all the same.
//
// One table, tickflake_cells unless [WithTable] says otherwise, with one row for each
// node number ever claimed. No row is ever deleted, and none must be: a row that is
// gone takes along what was promised to be issued never again. The table is made by
// the first write if it is missing, for which the user needs the right to create it;
// or a DBA runs [Store.Schema] beforehand, and the user needs SELECT, INSERT and
// UPDATE on it. All processes of a fleet must see the same table: mind a search_path
// that differs between users.
//
// # What can be lost
//
// A write that was acknowledged and is lost makes two processes issue the same IDs.
// That happens if the server acknowledges what it has not synced, and if a replica
// takes over that has not got all. [Store.Warnings] looks for both. What to set
// is in the docs of [PostgreSQL] and [MySQL].
//
// A cell's version grows by a random step of up to 2³². A server that loses writes,
// or shows them before they are safe, and then takes others instead, does not give
// those the same versions; so whoever has seen a lost one finds that the cell
// is another, which a counter would hide.
package sqlstore
