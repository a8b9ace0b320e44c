// Package scale runs fleets of real keepers on a model of one store, in virtual time, and prints the
// columns of docs/scale.md. It has tests only:
//
//	go test ./internal/simulation/scale -v -scale.full
package scale
