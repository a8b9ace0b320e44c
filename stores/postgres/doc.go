// Package postgres keeps cells in a table of a PostgreSQL database, by the driver pgx.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a postgres:// or postgresql:// URL; import this package for it.
//   - [New]: for a pool of your own.
//
// It brings 6 modules of others into a program.
//
// # URLs
//
//	postgres://ids@db.example:5432/ops?sslmode=verify-full&namespace=orders
//
// The namespace is stores.DefaultNamespace unless given, and the table tickflake_cells; table=NAME names another, also
// as SCHEMA.TABLE. All other parameters are pgx's, which are those of libpq: sslmode and sslrootcert for TLS,
// sslcert and sslkey, passfile, connect_timeout. The password may come from
// PGPASSWORD or a passfile, too. Files are read for each new connection, so they may be renewed in place. Several hosts are given as
// postgres:///db?host=a,b&port=5432,5432; then the primary among them is chosen, unless
// target_session_attrs says otherwise. If a host does not answer within 2 seconds, the next
// is tried, unless connect_timeout says otherwise.
//
// # Requirements
//
// PostgreSQL 9.5 or later, and what package sqlstore says of the primary, the table and the rights. A pooled connection
// will do, or a proxy such as PgBouncer. pgx adds a round trip if the connection has been idle for
// a second, to check that it is alive. It prepares no statements.
//
// # Connections
//
// Opened by a URL, a store keeps its connection for up to ten minutes without use. When an operation is given up,
// another connection asks the server to cancel its statement, which also ends the wait for a
// lock. So there are at most eight. If the network keeps connections open and passes nothing
// on, as a proxy that hangs, the server does not see that they were closed, and counts them
// until its authentication_timeout: with its default of a minute, about 20 in all.
//
// A server that cannot cancel, as while its disk hangs, keeps a connection for each cell that
// was written meanwhile: one for a lease, and at most eight more for one that claims a node
// number.
//
// # To lose nothing
//
// One server loses nothing with its default settings. The doc of [sqlstore.PostgreSQL] says what to set for a standby. An
// unlogged table forgets, and is refused; fsync = off, and a standby that the server does not wait for, are logged.
// CockroachDB and YugabyteDB, which speak the same protocol, are refused: nobody has tried tickflake on them.
//
// # Failovers
//
// The tests fail over PostgreSQL 15 under load, while processes crash and clocks step. With a
// synchronous standby no ID is issued twice, and IDs continue within seconds, without a
// restart. An old primary that comes back without fencing waits for its standby, so it
// answers neither Read nor Swap: stop it, so that the processes that are connected to it can
// continue. With an asynchronous standby each process notices the loss, and continues above
// all limits that it has seen; a process that starts after the failover cannot notice it, and
// can issue IDs twice.
package postgres
