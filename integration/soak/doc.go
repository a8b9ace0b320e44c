//go:build linux

// Command soak runs fleets of the service for an hour under faults, and checks all they issue.
//
//	go run ./integration/soak
//	go run ./integration/soak --for 2m --store directory --json soak.json
//
// A fleet is three servers, each a process of the real "tickflake serve", on one store: a
// directory, or an etcd, an S3 or an API server of Kubernetes that the command runs. Six clients
// take IDs and numbers of a segmented and of an ordered sequence: three of package client, and one
// each of Redis, gRPC and HTTP that asks the next server after an error. A server reads a clock that
// the soak steps: the third one directly, the others through a monoclock, which sees a step when
// the server starts again.
//
// Every few seconds one fault of package fleet begins, and another one when it is over: a server is
// killed or drained and started again; it is stopped by SIGSTOP for a while; the network between
// the clients and a server, or between a server and the store, is closed or holds all bytes back; a
// clock is stepped; the store is killed and started again. The third server is never ended, so that
// its memory at the end can be compared with that at the start.
//
// These promises are checked:
//
//   - No ID and no number comes twice. All of them are kept, and compared.
//   - The IDs that a client of package client returns ascend, as do those of a server that keeps
//     its node number, as each other client sees them.
//   - The numbers of the ordered sequence are in the order of real time, across all clients.
//   - A call fails only with an error that says that no server serves it now.
//   - No server ends by itself.
//   - When the faults are over, each server serves IDs and both sequences again.
//   - Every call returns, at most a minute after its deadline of ten seconds.
//   - No server, and not the soak, has 64 MB, 256 goroutines or 64 files more at the end than
//     after the first minute.
//
// The exit code is 1 if one of them does not hold, and 2 if the soak could not run.
package main
