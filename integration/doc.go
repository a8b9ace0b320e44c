// Package integration is the test house: what tests need that run servers and processes. It is a module that nobody
// imports but other modules for tests, so no user's go.mod has its drivers.
//
//	engines      each store on its real server: one table for all, and what is special to one
//	service      the service from outside: clients of others, a browser, strangers, and fleets under faults; the soak
//	metrics      what oteltickflake has for Prometheus and Grafana
//	fleet        servers or keepers on one store, their clients, faults, ledgers and verdict
//	program      builds, starts, freezes and kills a process: program.Serve is a server of tickflake
//	servers      runs the server of a store: servers.For(t, servers.PostgreSQL)
//	stepped      a wall clock that a test sets, for processes and for keepers
//
// A server that is not installed skips its tests, and each says what installs it; with TICKFLAKE_REQUIRE_SERVERS=1 they
// fail. Two are modules of their own, which "go build" makes once: servers/s3gateway, which is versitygw for S3, and
// servers/kubeapiserver, which only nightly tests need.
//
// # A failure again
//
// A failed test prints what the clients got, what each server said, and the first examples of each broken promise, with
// the time since the start of the fleet. A soak prints the flags that bring its faults again, in their order:
//
//	go test ./integration/service -v -run 'TestFleet/soak on etcd' -service.soak 2m -service.seed 8109939612592611523
//
// Other faults of processes come in the order of their row; one row, again and again:
//
//	go test ./integration/service -run TestFleet/^killed -count 10
//
// The operating system draws the moments, so a second run is alike and not equal. Fleets in virtual time are mostly equal, so a
// failure comes again in some of 20 runs. TestFleet, TestFleetPast and TestFleetUnder of package lease and TestAtRandom of
// package sequence print what runs a seed again:
//
//	go test ./lease -run '^TestFleet$' -fleet.seed=173 -count=20
//	go test ./sequence -run TestAtRandom -worlds=174
package integration
