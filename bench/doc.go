// Package bench measures what an ID costs, beside the least it could cost.
//
// The floor of one ID is one clock read and one compare-and-swap; a benchmark
// of just that stands beside every figure, and what matters is the ratio.
// Single figures on a shared machine mean little: BenchmarkTargets interleaves
// the compared cases in short rounds and fails where a ratio misses its target.
//
//	go test ./bench -run '^$' -bench Targets
//	go test ./bench -run '^$' -bench . -count 10 | tee new.txt   # for benchstat
//
// Package peers beside it puts other generators through the fault catalogue.
package bench
