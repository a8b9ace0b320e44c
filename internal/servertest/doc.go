// Package servertest runs real servers for tests, by package server: a private process
// on a free port, with its data in a temporary directory, that the test can kill and
// start again.
//
//	dir, port := servertest.Dir(t, ""), servertest.Port(t)
//	config, err := server.Redis(dir, port)
//	servertest.Need(t, err)
//	config.Ready = func(ctx context.Context) error { return ping(ctx, port) }
//	process := servertest.Start(t, config)
//	...
//	process.Kill()  // as kill -9 does
//	process.Start() // on the same data
//
// If a server is missing, the test is skipped, and names the package of Debian
// that has it. With TICKFLAKE_REQUIRE_SERVERS=1 in the environment it fails instead.
//
// All servers are stopped when the test ends, and their output
// is shown if the test has failed.
package servertest
