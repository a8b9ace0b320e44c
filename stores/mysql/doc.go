// Package mysql keeps the cells of a fleet in a table of a MySQL or MariaDB database,
// by the driver go-sql-driver/mysql.
//
//	store, err := mysql.Open(ctx, "mysql://ids@db.example:3306/ops?tls=true")
//
// # What it needs
//
// MySQL 5.7, MariaDB 10.2 or a later one, and the primary of it: a proxy that sends
// reads to replicas must be told not to. The table tickflake_cells, of InnoDB, is made
// by the first write, if the user has the right CREATE on the database; or a DBA runs
// what Schema returns, and the user needs SELECT, INSERT and UPDATE on the table. Rows
// must never be deleted, nor the table restored from an old backup while a fleet that
// used it lives.
//
// Each operation is one statement and one round trip (a Read two, unless the binary log
// is on and sync_binlog is 1, as MySQL has it by default), if the driver's option
// interpolateParams is on, as [Open] sets it. Without it, each is two. A Swap of
// a cell that is there and was changed takes one more, to tell that from a session
// without autocommit.
//
// # What can be lost
//
// On one server with innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 if it has
// a binary log, nothing. MySQL's defaults are these; MariaDB's sync_binlog is 0. No
// client can set them, so look: the method Warnings does. With asynchronous
// replication, a failover loses the last writes. What to set is in the doc of
// [sqlstore.MySQL].
package mysql
