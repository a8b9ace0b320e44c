// Package sequences puts counted sequences through faults that need real processes, real
// stores and recorded histories: processes of one sequence are killed again and again; the
// calls of the ordered mode are recorded, across processes, and checked to be linearizable.
//
// The folder holds tests only, and uses the library from outside.
//
//	go test ./integration/sequences
//	go test ./integration/sequences -run /killed -kills 10000
package sequences
