package main

import (
	"fmt"
	"testing"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/strategies"
)

// next is the plain case: Generator.Next, with a sequence that is not used up.
func next() cases.Case { return cases.Next("Next", cases.Wide()) }

func BenchmarkFloor(b *testing.B) { run(b, cases.Floor(), 1) }

func BenchmarkNext(b *testing.B) {
	b.Run("default", func(b *testing.B) { run(b, next(), 1) })
	b.Run("borrow", func(b *testing.B) { run(b, cases.Ahead(), 1) })
	b.Run("lease", func(b *testing.B) { run(b, cases.Leased("lease", cases.Wide()), 1) })
	b.Run("random-start", func(b *testing.B) {
		run(b, cases.Next("random-start", cases.Wide(), generator.WithSequenceStart(strategies.StartRandom(100))), 1)
	})
}

func BenchmarkNextContext(b *testing.B) { run(b, cases.NextContext(), 1) }

func BenchmarkNextN(b *testing.B) {
	for _, size := range []int{16, 128, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { run(b, cases.NextN(size), 1) })
	}
}

func BenchmarkStream(b *testing.B) { run(b, cases.Stream(), 1) }
func BenchmarkAll(b *testing.B)    { run(b, cases.Iterator(), 1) }

func BenchmarkSharedFloor(b *testing.B) { runEach(b, cases.SharedFloor(), 2, 8, 64) }
func BenchmarkNextShared(b *testing.B)  { runEach(b, next(), 2, 8, 64) }
func BenchmarkStreams(b *testing.B)     { runEach(b, cases.Stream(), 1, 2) }
func BenchmarkFleet(b *testing.B)       { runEach(b, cases.Fleet(), 1, 2, 8, 64) }

// BenchmarkPeers runs other generators, each as its users call it. Where the format of
// IDs is the limit, as the report says, it is what the figure shows.
func BenchmarkPeers(b *testing.B) {
	for _, c := range cases.Peers() {
		b.Run(c.Name, func(b *testing.B) { runEach(b, c, 1, 2) })
	}
}
