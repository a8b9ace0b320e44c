// Package server runs real servers for tests and benchmarks: a private process on a
// free port of the loopback interface, with its data in a temporary directory.
//
// [Start] runs any program; [PostgreSQL], [MariaDB], [Redis] and [ZooKeeper] return how
// to run these, with the default settings except for ports and paths:
//
//	dir, err := server.Dir("", "")
//	port, err := server.Port()
//	config, err := server.Redis(dir, port)
//	config.Ready = func(ctx context.Context) error { return ping(ctx, port) }
//	process, err := server.Start(ctx, config)
//	...
//	err = process.Stop()
//	err = os.RemoveAll(dir)
//
// A server that is not installed is a [*MissingError], which names Debian's package.
// Some servers refuse to run as root, as programs in a container do. Then they run with the
// rights of another user, who must own the directory.
//
// On Linux a server ends when the program ends, even if it is killed. On other
// systems it keeps running if the program is killed. The package works on Unix. On other
// systems all servers are missing.
//
// Tests use package servertest, which cleans up after them.
package server
