// Package mysql keeps cells in a table of a MySQL or MariaDB database, by the driver
// go-sql-driver/mysql.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a mysql:// URL; import this package for it.
//   - [New]: for a pool of your own.
//
// It brings 2 modules of others into a program.
//
// # URLs
//
//	mysql://ids@db.example:3306/ops?tls=true&namespace=orders
//
// The port is 3306, the namespace stores.DefaultNamespace and the table tickflake_cells unless given.
// This package has one more parameter, table=NAME: the table, also as DATABASE.TABLE.
// All others are the driver's, as in its DSN: tls=true for TLS (or the name of a
// configuration that was registered with the driver; its GetClientCertificate can read a file that is
// renewed), timeout, readTimeout and so on;
// it takes an unknown name for a system variable. interpolateParams is
// on unless the URL says otherwise.
//
// # Requirements
//
// MySQL 5.7, MariaDB 10.2 or later, and what package sqlstore says of the primary, the table and the rights. Without
// the driver's option interpolateParams, each statement takes two round trips.
//
// # Connections
//
// Opened by a URL, a store keeps its connection for up to three minutes without use. The server may
// count a closed one up to its connect_timeout if the network holds all bytes.
//
// A statement that meets a lock, such as that of a transaction or of ALTER TABLE, waits
// for a second and is sent again, until its context ends: unless the URL sets
// innodb_lock_wait_timeout and lock_wait_timeout, the store sets them to 1. With the server's defaults, 50 seconds and a day or
// more, it would keep the connection of a statement that was given up: up to four more connections every 15 seconds.
//
// # To lose nothing
//
// The doc of [sqlstore.MySQL] says what to set. innodb_flush_log_at_trx_commit = 0, and a table of another engine than
// InnoDB, forget, and are refused; other values are logged, and so are replicas that a write does not wait for. MySQL tells
// who has the right REPLICATION SLAVE how many replicas there are; without it that is logged as unknown, unless replication is
// semi-synchronous. A reader of the binary log, as of change data capture, is taken for a replica.
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
