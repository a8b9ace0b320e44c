// Package exampletest runs the examples as their users do: it builds their programs,
// starts them, reads what they print, and sends them signals. It also runs the
// commands that the README of the examples shows.
//
//	service := exampletest.Start(t, exampletest.Build(t, "./httpservice"), "--listen", "127.0.0.1:0")
//	addr := service.Await(`address=(\S+)`)[1]
//	...
//	service.Signal(syscall.SIGTERM)
//	require.Zero(t, service.Wait())
//
// It works on Unix.
package exampletest
