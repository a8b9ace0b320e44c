// Package exampletest runs the examples as users do: it builds and starts programs, reads
// their output, and sends signals. It also runs the commands of the README of the examples.
//
//	service := exampletest.Start(t, exampletest.Build(t, "./httpservice"), "--listen", "127.0.0.1:0")
//	addr := service.Await(`address=(\S+)`)[1]
//	...
//	service.Signal(syscall.SIGTERM)
//	require.Zero(t, service.Wait())
//
// It needs Unix.
package exampletest
