package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// BenchmarkOrdered holds counted numbers in ordered mode to their speed, against the
// speed of the same server without them. Take 50 rounds or more: -benchtime 50x.
func BenchmarkOrdered(b *testing.B) {
	b.Run("one-caller-directory", func(b *testing.B) {
		dir, err := servers.Dir() // on a disk, where a sync takes its time
		require.NoError(b, err)
		oneCaller(b, dir)
	})
	b.Run("one-caller-postgres", func(b *testing.B) { oneCaller(b, started(b, servers.PostgreSQL).URL) })
	b.Run("1000-callers-postgres", func(b *testing.B) {
		url := started(b, servers.PostgreSQL).URL
		ours := crowd(b, url)
		require.NoError(b, ours(callers))
		theirs := nextvals(b, url)
		t := interleaveFor(b, 100*time.Millisecond, measure.Work{Do: ours, Unit: callers}, measure.Work{Do: cases.Together(theirs...)})
		b.ReportMetric(float64(len(theirs)), "connections")
		report(b, t)
		atLeast(b, 10, "×nextval", median(measure.Ratios(t[1], t[0])))
	})
	b.Run("1000-callers-zookeeper", func(b *testing.B) {
		s := started(b, servers.ZooKeeper)
		t := interleaveFor(b, 100*time.Millisecond, measure.Work{Do: crowd(b, s.URL), Unit: callers}, measure.Work{Do: sequentialNodes(b, s.Addr)})
		report(b, t)
		atLeast(b, 300, "×node", median(measure.Ratios(t[1], t[0])))
	})
}

const callers = 1000

// report shows the rates behind a ratio.
func report(b *testing.B, t [][]float64) {
	b.ReportMetric(1e9/median(t[0]), "numbers/s")
	b.ReportMetric(1e9/median(t[1]), "of-server/s")
}

// started returns a server that runs until the benchmark is over.
func started(b *testing.B, kind servers.Kind) *servers.Server {
	all, stop := servers.Start(b.Context(), servers.Wanted{Kind: kind})
	b.Cleanup(func() { require.NoError(b, stop()) })
	if all[0].Missing() && os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "1" {
		b.Skip(all[0].Err)
	}
	require.NoError(b, all[0].Err)
	return all[0]
}

func openStore(b *testing.B, url string) stores.Store {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	store, err := stores.Open(ctx, url)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	return store
}

// oneCaller compares a number in ordered mode with a swap of a cell of the same length.
func oneCaller(b *testing.B, url string) {
	store := openStore(b, url)
	number := openSequence(b, store, "orders", sequence.Ordered)
	_, err := number.Next(b.Context())
	require.NoError(b, err)
	like, err := store.Read(b.Context(), "seq/orders")
	require.NoError(b, err)
	require.NotZero(b, like.Version)
	version := uint64(0)
	swap := func(n int) (err error) {
		for range n {
			if version, err = store.Swap(b.Context(), "bench/swap", version, like.Value); err != nil {
				return err
			}
		}
		return nil
	}
	atMost(b, 1.2, "×swap", ratio(b, numbersOf(b, number), swap))
}

// numbersOf takes one number after the other, with a context of its own, as each request of
// a service has.
func numbersOf(b *testing.B, s *sequence.Sequence) cases.Loop {
	return func(n int) error {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		for range n {
			if _, err := s.Next(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// crowd has 1,000 goroutines share out the numbers of one sequence.
func crowd(b *testing.B, url string) cases.Loop {
	s := openSequence(b, openStore(b, url), "orders", sequence.Ordered)
	return cases.Together(slices.Repeat([]cases.Loop{numbersOf(b, s)}, callers)...)
}

// nextvals asks the server for the numbers of a sequence of its own, over as many connections
// as it has now.
func nextvals(b *testing.B, url string) []cases.Loop {
	ctx := b.Context()
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, url)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, conn.Close(context.WithoutCancel(ctx))) })
		return conn
	}
	first := connect()
	_, err := first.Exec(ctx, "CREATE SEQUENCE ids")
	require.NoError(b, err)
	var others int
	require.NoError(b, first.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()").Scan(&others))
	require.Positive(b, others, "ours has no connection")
	var loops []cases.Loop
	for i := range others {
		conn := first
		if i > 0 {
			conn = connect()
		}
		loops = append(loops, func(n int) error {
			for range n {
				var id int64
				if err := conn.QueryRow(ctx, "SELECT nextval('ids')").Scan(&id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return loops
}

// sequentialNodes creates sequential nodes, one after the other.
func sequentialNodes(b *testing.B, addr string) cases.Loop {
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	_, err = conn.Create("/ids", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(b, err)
	return func(n int) error {
		for range n {
			if _, err := conn.Create("/ids/", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
				return err
			}
		}
		return nil
	}
}
