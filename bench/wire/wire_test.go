//go:build unix

package wire

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

func quick(budget time.Duration) *measure.Run {
	return &measure.Run{Quick: true, Budget: budget, Rand: rand.New(rand.NewPCG(1, 2))}
}

func check(t *testing.T, s results.Section) {
	s.ID = "service"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

// All loads work on the real server, and every target is measured.
func TestAllLoads(t *testing.T) {
	s := Sections()[0].Measure(t.Context(), quick(time.Second)) // so it does the least
	check(t, s)
	require.Empty(t, s.Skipped)
	if notes := strings.Join(s.Notes, "\n"); strings.Contains(notes, "does not run here") {
		require.NotEqual(t, "1", os.Getenv("TICKFLAKE_REQUIRE_SERVERS"), notes)
		t.Skip(notes)
	}
	for _, table := range s.Tables {
		for _, row := range table.Rows {
			assert.Empty(t, row.Note, row.Name)
			for i, cell := range row.Cells {
				assert.True(t, len(cell.Samples) > 0 || cell.Text != "", "%s, %s, %s", table.ID, row.Name, table.Columns[i].ID)
			}
		}
	}
	require.Len(t, s.Targets, 13)
	for _, target := range s.Targets {
		// A hypervisor that took processor time leaves a pair without a round that counts.
		assert.True(t, len(target.Got.Samples) > 0 || target.Open == "the machine was disturbed", "%s: %s", target.ID, target.Open)
	}
	assert.Contains(t, verdict(s), "pipelines of 64")
}

func TestParseBenchmark(t *testing.T) {
	const titles = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	const figures = `"INCR k","62500.00","0.411","0.112","0.375","0.647","1.103","1.159"` + "\n"
	got, err := parseBenchmark("WARNING: Could not fetch server CONFIG\n" + titles + figures)
	require.NoError(t, err)
	assert.Equal(t, turn{perSecond: 62500, p50: 0.375, p99: 1.103}, got)
	for name, out := range map[string]string{
		"empty":         "",
		"no figures":    titles,
		"an error":      "Error from server: ERR unknown command\n" + titles + figures,
		"not a number":  titles + strings.ReplaceAll(figures, "62500.00", "many"),
		"other columns": strings.ReplaceAll(titles, "p99", "p90") + figures,
		"broken":        titles + `"INCR k","62500.00` + "\n",
	} {
		_, err := parseBenchmark(out)
		assert.Error(t, err, name)
	}
}

// A server that sends fewer IDs than asked for, or the same again, is found out.
func TestLoadsCheckTheAnswers(t *testing.T) {
	serve := func(first, count int64) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s := grpc.NewServer()
		tickflakev1.RegisterTickflakeServer(s, &fixed{run: &tickflakev1.Run{First: first, Count: count, Stride: 1}})
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		return l.Addr().String()
	}
	r, err := newRPC(serve(1, credit))
	require.NoError(t, err)
	_, err = r.unary(t.Context(), 10)
	assert.ErrorContains(t, err, "asked for one ID")
	_, err = r.stream(t.Context(), 20*credit)
	assert.ErrorContains(t, err, "after the ID", "the same run again")
	require.NoError(t, r.close())

	for name, body := range map[string]string{
		"no JSON":        "<html>",
		"too few":        `{"ids":["1","2"]}`,
		"the same again": `{"ids":["1"` + strings.Repeat(`,"7"`, batch-1) + `]}`,
		"no ID":          `{"ids":["1"` + strings.Repeat(`,"x"`, batch-1) + `]}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		b, addr := overHTTP(""), strings.TrimPrefix(s.URL, "http://")
		b.request = fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", addr)
		assert.Error(t, b.connect(t.Context(), addr), name)
		if name == "too few" {
			_, err = b.take(t.Context(), 10*batch)
			assert.ErrorContains(t, err, "got 2")
		}
		require.NoError(t, b.close())
		s.Close()
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	b := overHTTP(addr)
	assert.ErrorContains(t, b.connect(t.Context(), addr), "status 404")
	_, err = b.take(t.Context(), batch)
	assert.ErrorContains(t, err, "status 404")
	require.NoError(t, b.close())
}

func TestRESPAnswers(t *testing.T) {
	in := func(text string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(text), 16) }
	const two = "*2\r\n$3\r\n123\r\n$4\r\n4567\r\n"
	ids, err := readRESP(in(two))
	require.NoError(t, err)
	assert.Equal(t, []string{"123", "4567"}, ids)
	n, err := skimRESP(in(two))
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	for _, bad := range []string{"", "-ERR no\r\n", "*-1\r\n", "*2\r\n$3\r\n123\r\n", "$3\r\n123\r\n", two + "+more\r\n"} {
		_, err := skimRESP(bufio.NewReader(strings.NewReader(bad)))
		assert.Error(t, err, "%q", bad)
	}
}

// fixed answers everything with the same run.
type fixed struct {
	tickflakev1.UnimplementedTickflakeServer
	run *tickflakev1.Run
}

func (f *fixed) Take(context.Context, *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	return &tickflakev1.TakeResponse{Runs: []*tickflakev1.Run{f.run}}, nil
}

func (f *fixed) Stream(s grpc.BidiStreamingServer[tickflakev1.StreamRequest, tickflakev1.StreamResponse]) error {
	for {
		if _, err := s.Recv(); err != nil {
			return nil
		}
		if err := s.Send(&tickflakev1.StreamResponse{Runs: []*tickflakev1.Run{f.run}}); err != nil {
			return err
		}
	}
}

// The targets compare round by round, and are missed where the server is slower than Redis.
func TestTargets(t *testing.T) {
	repeat := func(v float64) []float64 {
		var all []float64
		for range results.Enough {
			all = append(all, v)
		}
		return all
	}
	var subjects []*subject
	for row, rate := range map[string]float64{redisRow: 1000, idRow: 900, idsRow: 12e6, streamRow: 9e6, webRow: 10e6, takeRow: 95, emptyRow: 100} {
		for _, column := range []string{"", "1", "16", "64"} {
			subjects = append(subjects, &subject{row: row, column: column, rate: repeat(rate), p99: repeat(1.5)})
		}
	}
	want := map[string]results.State{
		"service-resp-1": results.Missed, "service-resp-16": results.Met, "service-resp-64": results.Missed, "service-resp-rate": results.Missed, "service-resp-p99": results.Met,
		"service-ids": results.Met, "service-stream": results.Missed, "service-http": results.Met, "service-unary": results.Met,
	}
	got := map[string]results.State{}
	for _, target := range targets(subjects) {
		got[target.ID] = target.State()
	}
	assert.Equal(t, want, got)
	c := &calls{all: []*kind{
		{name: libraryRow, ns: repeat(40)},
		{name: clientRow, ns: repeat(51), allocs: repeat(0.4), local: repeat(99.95), waits: func() uint64 { return 0 }},
	}}
	var states []results.State
	for _, target := range c.targets() {
		states = append(states, target.State())
	}
	assert.Equal(t, []results.State{results.Missed, results.Met, results.Met}, states)
	check(t, results.Section{Tables: []results.Table{c.table()}, Targets: append(targets(subjects), c.targets()...)})
}
