// Package service puts the service through faults, through the wire: clocks are stepped, the
// store is away, servers are killed and restarted under load, and strangers send bad input
// while others work.
//
// The folder holds tests only, and uses the real "tickflake serve" from outside, by package rig.
//
//	go test ./chaos_test/service
//	go test ./chaos_test/service -run TestFleet/^killed -service.kills 500
//	go test ./chaos_test/service -run TestFleet/rolling -service.restarts 50
//	go test ./chaos_test/service -run TestNoGrowth -service.soak 1h -timeout 2h
package service
