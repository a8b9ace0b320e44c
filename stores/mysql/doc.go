// Package mysql keeps cells in a table of a MySQL or MariaDB database, by the driver
// go-sql-driver/mysql.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a mysql:// URL; import this
//     package for it.
//   - [New]: a Store on the caller's own database handle.
//
// # URLs
//
//	mysql://ids@db.example:3306/ops?tls=true&namespace=orders
//
// The default port is 3306. This package has three parameters:
//
//	namespace=NAME   the namespace, as stores.CheckNamespace permits; without it,
//	                 stores.DefaultNamespace
//	table=NAME       the table, also as DATABASE.TABLE;
//	                 without it, sqlstore.DefaultTable
//	socket=PATH      a Unix socket to connect to instead of a host
//
// All others are the driver's, as in its DSN: tls=true for TLS (or the name of a
// configuration that was registered with the driver), timeout, readTimeout and so on;
// it takes an unknown name for a system variable. interpolateParams is
// on unless the URL says otherwise. No error shows the password.
//
// # Requirements
//
// MySQL 5.7, MariaDB 10.2 or later, and a connection to the primary: a proxy must not send
// these reads to replicas. The first write makes the table
// tickflake_cells, with InnoDB, if the user has the right CREATE on the database. Or a DBA
// runs the statement of Schema, and the user needs SELECT, INSERT and UPDATE on the
// table.
//
// Each operation is one statement and one round trip, and a Read of a cell that exists two,
// if the driver's option interpolateParams is on. Without it, each statement takes two. A
// Swap of a cell that was changed takes one more, to distinguish that from a session without
// autocommit and from a damaged row.
//
// # Connections
//
// Opened by a URL, a store keeps one connection, for up to three minutes without use, and
// has at most four, even while the server does not answer: a connection whose operation
// was given up counts until the server has answered, or 15 seconds have passed. On Linux it
// is closed 10 seconds after the server's machine no longer acknowledges. The server may
// count a closed connection for a moment, and up to its connect_timeout if the network
// holds all bytes.
//
// A statement that meets a lock, such as that of a transaction or of ALTER TABLE, waits
// for a second and is sent again, until its context ends: unless the URL sets
// innodb_lock_wait_timeout and lock_wait_timeout, the store sets them to 1. Set them for a
// handle given to [New], too. Without them, the server keeps the connection of a statement
// that was given up for as long as its settings say, by default 50 seconds and a day or
// more: up to four more connections every 15 seconds.
//
// # To lose nothing
//
// One server loses nothing with innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1
// if it has a binary log. MySQL's defaults are these; MariaDB's sync_binlog is 0.
// innodb_flush_log_at_trx_commit = 0, and a table of another engine than InnoDB, forget,
// and are refused; other values are logged. With asynchronous replication, a failover
// loses the last writes. The doc of [sqlstore.MySQL] says what to set. Never delete
// rows, and never restore the table from a backup: IDs are then issued twice.
//
// # Failovers
//
// The tests fail over MariaDB 10.11 under load, while processes crash and clocks step. With a
// semi-synchronous replica no ID is issued twice, even if the old primary comes back without
// fencing: it waits for its replica, so it answers neither Read nor Swap. IDs continue within
// seconds, without a restart. With an asynchronous replica each process notices the loss, and
// continues above all limits that it has seen; a process that starts after the failover
// cannot notice it, and can issue IDs twice.
package mysql
