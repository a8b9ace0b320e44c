package bench

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/strategies"
)

func run(b *testing.B, w work) {
	b.ReportAllocs()
	w(b.N)
}

func BenchmarkFloor(b *testing.B) { run(b, floor()) }

func BenchmarkNext(b *testing.B) {
	b.Run("default", func(b *testing.B) {
		run(b, next(b, newGenerator(b, generator.WithLayout(wide()))))
	})
	b.Run("borrow", func(b *testing.B) {
		// The default layout's sequence is used up five times as fast as ticks
		// pass, so nearly every ID comes from a tick not yet begun.
		run(b, next(b, newGenerator(b, generator.WithStrategy(strategies.BorrowUpTo(math.MaxInt64)))))
	})
	b.Run("random-start", func(b *testing.B) {
		run(b, next(b, newGenerator(b, generator.WithLayout(wide()), generator.WithSequenceStart(strategies.StartRandom(100)))))
	})
}

func BenchmarkNextContext(b *testing.B) {
	g := newGenerator(b, generator.WithLayout(wide()))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.NextContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextN(b *testing.B) {
	for _, size := range []int{16, 128, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			run(b, nextN(b, newGenerator(b, generator.WithLayout(wide())), size))
		})
	}
}

func BenchmarkStream(b *testing.B) {
	run(b, stream(b, newGenerator(b, generator.WithLayout(wide()))))
}

func BenchmarkAll(b *testing.B) {
	g := newGenerator(b, generator.WithLayout(wide()))
	b.ReportAllocs()
	n := 0
	for _, err := range g.All(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n >= b.N {
			break
		}
	}
}

func BenchmarkSharedFloor(b *testing.B) {
	for _, goroutines := range []int{2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			run(b, together(times(goroutines, sharedFloor())...))
		})
	}
}

func BenchmarkNextShared(b *testing.B) {
	for _, goroutines := range []int{2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			g := newGenerator(b, generator.WithLayout(wide()))
			run(b, together(times(goroutines, next(b, g))...))
		})
	}
}

func BenchmarkStreams(b *testing.B) {
	for _, streams := range []int{1, 2} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			run(b, streamsOf(b, newGenerator(b, generator.WithLayout(wide())), streams))
		})
	}
}

// streamsOf has each of n goroutines issue IDs from a stream of its own.
func streamsOf(tb testing.TB, g *generator.Generator, n int) work {
	works := make([]work, n)
	for i := range works {
		works[i] = stream(tb, g)
	}
	return together(works...)
}
