// Package postgres keeps the cells of a fleet in a table of a PostgreSQL database, by
// the driver pgx.
//
//	store, err := postgres.Open(ctx, "postgres://ids@db.example:5432/ops?sslmode=verify-full")
//
// # What it needs
//
// PostgreSQL 9.5 or later, and the primary of it: see [Open] for several hosts. The
// table tickflake_cells is made by the first write, if the user has the right CREATE
// on the schema; or a DBA runs what Schema returns, and the user needs SELECT, INSERT
// and UPDATE on the table. Rows must never be deleted, nor the table restored from an
// old backup while a fleet that used it lives.
//
// Each operation is one statement and one round trip, on a pooled connection or
// through a proxy such as PgBouncer. pgx adds one if the connection has lain idle for
// a second, to see whether it still stands, and one for each new statement that
// it prepares, if it is set to do that; [Open] sets it not to.
//
// # What can be lost
//
// On one server, nothing: each write is committed with synchronous_commit = on, even
// where the database or the role has it off. That leaves a server with fsync off, and
// a failover to a standby that is not synchronous. What to set is in the doc of
// [sqlstore.PostgreSQL]; the method Warnings looks for it.
package postgres
