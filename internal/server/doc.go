// Package server runs real servers for tests and benchmarks: a private process on a
// free port of the loopback interface, with its data in a temporary directory.
//
// [Start] runs any program; [PostgreSQL], [MariaDB], [Redis] and [ZooKeeper] say how
// to run these, with the settings that their makers ship but for ports and paths:
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
// Some servers refuse to run as root, as programs in a container do. They run with the
// rights of another user then, whose directory it must be.
//
// On Linux a server does not outlive the program, whatever becomes of that. On other
// systems it does if the program is killed. It works on Unix. Elsewhere all servers are
// missing.
//
// Tests use package servertest, which cleans up after them.
package server
