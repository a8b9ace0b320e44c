package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
)

// source opens the source of a case, until the benchmark is over.
func source(tb testing.TB, c cases.Case) cases.Source {
	s, err := c.Open(tb.Context())
	require.NoError(tb, err)
	if s.Close != nil {
		tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	}
	return s
}

// loop is that of so many goroutines with one source of the case.
func loop(tb testing.TB, c cases.Case, goroutines int) cases.Loop {
	return cases.Together(source(tb, c).Loops(goroutines)...)
}

// run benchmarks a case, with so many goroutines.
func run(b *testing.B, c cases.Case, goroutines int) {
	l := loop(b, c, goroutines)
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, l(b.N))
}

// runEach benchmarks a case with each of several numbers of goroutines.
func runEach(b *testing.B, c cases.Case, goroutines ...int) {
	for _, n := range goroutines {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, c, n) })
	}
}
