// Package servertest runs real servers for tests: a private process on a free port,
// with its data in a temporary directory, that the test can kill and start again.
//
//	bin := servertest.Find(t, "redis-server", "redis-server")
//	dir, port := servertest.Dir(t, ""), servertest.Port(t)
//	server := servertest.Start(t, servertest.Config{
//		Path:  bin,
//		Args:  []string{"--port", strconv.Itoa(port), "--dir", dir},
//		Dir:   dir,
//		Ready: func(ctx context.Context) error { return ping(ctx, port) },
//	})
//	...
//	server.Kill()  // as kill -9 does
//	server.Start() // on the same data
//
// Some servers refuse to run as root, as tests in a container do. Those are given a
// User, who must be given the directory too:
//
//	dir := servertest.Dir(t, "postgres")
//	servertest.Run(t, servertest.Config{Path: initdb, Args: ..., Dir: dir, User: "postgres"})
//	server := servertest.Start(t, servertest.Config{Path: postgres, ..., User: "postgres"})
//
// Where a binary is missing, the test is skipped, and says which package of Debian
// has it. With TICKFLAKE_REQUIRE_SERVERS=1 in the environment it fails instead.
// Everything that was started is stopped when the test ends, and what it has printed
// is shown if the test has failed.
//
// It works on Unix. Elsewhere, Find skips the test.
package servertest
