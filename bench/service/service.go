// Package service measures the service: the real server in a process of its own, asked over the
// Redis protocol, gRPC and HTTP, beside a private Redis that counts. Its program must begin with
// [Empty].
package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "service", Title: "The service, beside Redis", Full: 55 * time.Second, Quick: time.Second,
		About: "The server is tickflake serve, in a process of its own on this machine, which its load generator shares. redis-benchmark asks it for one ID per request over 50 connections, and a private Redis for one INCR per request, " +
			"with so many requests in a pipeline as the column says. That Redis saves nothing to its disk. Processor time is that of the server's process. All loads take turns of a fraction of a second, in random order, and ratios are computed round by round. " +
			"The layout is 41/4/18: 262,144 IDs per millisecond, because the default layout ends at 4.096 million IDs per second. " +
			"The load generator of IDS, gRPC and HTTP is this program. The empty handler is a gRPC server in another process that answers each call with the same ID. The memory of a connection has the garbage that it left.",
		Measure: measureService}}
}

// layout is that of the server: the default one ends at 4.096 million IDs per second.
const layout = "41/4/18"

// pipelines are how many requests redis-benchmark sends at once.
var pipelines = []int{1, 4, 16, 64, 100}

// Rows of the tables.
const (
	redisRow   = "Redis, INCR"
	idRow      = "tickflake, ID"
	incrRow    = "tickflake, INCR of a segmented sequence"
	idsRow     = "RESP, IDS 1000"
	webRow     = "HTTP, n=1000"
	takeRow    = "gRPC, Take of one ID"
	emptyRow   = "gRPC, an empty handler"
	libraryRow = "the library's NextContext"
	clientRow  = "the client's Next"
	idleRow    = "RESP, idle"
)

// counted is the sequence of the server and the key of Redis.
const counted = "orders"

func measureService(ctx context.Context, run *measure.Run) (s report.Section) {
	var open measure.Closers
	defer func() { _ = open.Close() }() // on a panic
	server, err := start(ctx, &open)
	if err != nil {
		return report.Section{Skipped: fmt.Sprintf("The server does not start: %s.", servers.Reason(err)), Failed: true}
	}
	started, stop := servers.All(ctx, wantedRedis)
	open.Add(stop)
	redis := started[0]
	if redis.Err == nil {
		_, redis.Err = exec.LookPath("redis-benchmark")
	}
	s.Note("Redis %s.", redis.Version)
	if redis.Err != nil {
		s.Notes[0] = fmt.Sprintf("Redis or redis-benchmark does not run here, so what needs it is not measured: %s.", servers.Reason(redis.Err))
	}
	// The connections at rest come first: the memory of a server that has worked is partly
	// garbage that it keeps.
	resting := measureIdle(ctx, server, measure.Pick(run, 50, 1000))
	box := measure.Pick(run, 10*time.Millisecond, 120*time.Millisecond)
	loads := list(ctx, server, redis, box, &open)
	run.Until = run.Until.Add(-measure.Pick(run, 200*time.Millisecond, time.Second)) // to stop the servers
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, loads...)
	s.Tables, s.Targets = tables(loads, resting), targets(loads, resting)
	measure.Failed(&s, append(loads, resting))
	if err := open.Close(); err != nil && ctx.Err() == nil {
		s.Note("Stopping the servers failed: %s.", servers.Reason(err))
	}
	return s
}

// start runs the server, with its sequence.
func start(ctx context.Context, open *measure.Closers) (*program.Server, error) {
	dir, err := servers.Dir()
	if err != nil {
		return nil, err
	}
	open.Add(func() error { return os.RemoveAll(dir) })
	store := filepath.Join(dir, "store")
	if _, err := program.Tickflake(ctx, false, "sequence", "create", counted, "--store", store); err != nil {
		return nil, err
	}
	server, err := program.Serve(ctx, program.ServeConfig{Store: store, Args: []string{"--layout", layout}})
	if err == nil {
		open.Add(server.Close)
	}
	return server, err
}

// list returns all loads but the connections at rest.
func list(ctx context.Context, server *program.Server, redis *servers.Server, box time.Duration, open *measure.Closers) (all []*measure.Load) {
	add := func(row, at string, group report.Group, pid, unit int, base *measure.Load, err error, do measure.Do) *measure.Load {
		b := &measure.Batch{Do: []measure.Do{do}, Unit: 1, Target: box, LeadIn: -1, Floor: unit, CPU: func() (time.Duration, error) { return measure.CPUOf(pid) }}
		l := &measure.Load{Row: row, At: at, Group: group, Turn: b.Turn, Base: base, Served: true, Err: err}
		all = append(all, l)
		return l
	}
	redisPID := 0
	if redis.Err == nil {
		redisPID = redis.PID()
	}
	for _, p := range pipelines {
		at, least := fmt.Sprint(p), 200*p
		base := add(redisRow, at, report.Peers, redisPID, least, nil, redis.Err, benchmark(redis.Addr, p, "--user", loader, "-a", "none", "INCR", counted))
		add(idRow, at, report.Ours, server.PID(), least, base, redis.Err, benchmark(server.RESP, p, "ID"))
		add(incrRow, at, report.Ours, server.PID(), least, base, redis.Err, benchmark(server.RESP, p, "INCR", counted))
	}
	empty, emptyPID, err := startEmpty(ctx, open)
	floor, err := dialGRPC(empty, err, open)
	base := add(emptyRow, "", report.Floor, emptyPID, callers, nil, err, floor.unary)
	ours, err := dialGRPC(server.GRPC, nil, open)
	add(takeRow, "", report.Ours, server.PID(), callers, base, err, ours.unary)
	add(idsRow, "", report.Ours, server.PID(), batch, nil, nil, ids(server.RESP))
	add(webRow, "", report.Ours, server.PID(), batch, nil, nil, post(fmt.Sprintf("http://%s/v1/ids?n=%d", server.HTTP, batch)))
	return append(all, paced(ctx, server, box, open)...)
}

func tables(loads []*measure.Load, resting *measure.Load) []report.Table {
	rate, micros := func(ns float64) float64 { return 1e9 / ns }, func(ns float64) float64 { return ns / 1e3 }
	curve := func(id, title, unit string, better report.Better, cell func(*measure.Load) report.Cell) report.Table {
		t := report.Table{ID: id, Title: title, RowName: "request", Base: redisRow}
		for _, p := range pipelines {
			column := report.Column{ID: fmt.Sprint(p), Title: fmt.Sprintf("pipelines of %d", p), Unit: unit, Better: better}
			if p == 1 {
				column.Title = "no pipelining"
			}
			t.Columns = append(t.Columns, column)
		}
		return measure.Grid(t, loads, cell)
	}
	rows := func(t report.Table, at string, names ...string) report.Table {
		var some []*measure.Load
		for _, name := range names {
			some = append(some, measure.Find(append(loads, resting), name, at))
		}
		return measure.Rows(t, some, func(l *measure.Load, column string) report.Cell {
			if column == "rate" {
				return l.Of("wall", rate)
			}
			return l.Of(column, nil)
		})
	}
	requests := curve("service-resp", "One ID per request over the Redis protocol, 50 connections: requests per second", "req/s", report.More, func(l *measure.Load) report.Cell { return l.Of("wall", rate) })
	as := func(at string) string { return requests.Cell(idRow, at).Against(requests.Cell(redisRow, at)).Value() }
	requests.Say("The server answers %s requests for one ID per second without pipelining, %s as many as Redis answers INCR, and %s in pipelines of 64, %s as many.",
		requests.Cell(idRow, "1"), as("1"), requests.Cell(idRow, "64"), as("64"))
	return []report.Table{
		requests,
		curve("service-cpu", "Processor time of the server for such a request", "µs", report.Less, func(l *measure.Load) report.Cell { return l.Of("cpu", micros) }),
		rows(report.Table{ID: "service-latency", Title: "Time of such a request, without pipelining", RowName: "request", Base: redisRow, Detail: true, Columns: []report.Column{
			{ID: "p50", Title: "median", Unit: "ms", Better: report.Less},
			{ID: "p99", Title: "99%", Unit: "ms", Better: report.Less},
		}}, "1", redisRow, idRow, incrRow),
		rows(report.Table{ID: "service-batches", Title: "Many IDs per request", RowName: "request", Columns: []report.Column{
			{ID: "rate", Title: "rate", Unit: "IDs/s", Better: report.More},
			{ID: "cpu", Title: "processor time of the server", Unit: "ns/ID", Better: report.Less},
		}}, "", idsRow, webRow),
		rows(report.Table{ID: "service-unary", Title: fmt.Sprintf("One ID per call over gRPC, %d callers", callers), RowName: "call", Base: emptyRow, Columns: []report.Column{
			{ID: "rate", Title: "rate", Unit: "calls/s", Better: report.More},
			{ID: "cpu", Title: "processor time of the server", Unit: "ns", Better: report.Less},
		}}, "", emptyRow, takeRow),
		rows(report.Table{ID: "service-client", Title: "One ID per call in Go, one million calls per second", RowName: "call", Columns: []report.Column{
			{ID: "ns", Title: "time, median of bursts", Unit: "ns", Better: report.Less},
			{ID: "allocs", Title: "allocations, with those of requests", Unit: "per call", Better: report.Less},
			{ID: "local", Title: "calls that touch no network", Unit: "%", Better: report.More},
		}}, "", libraryRow, clientRow),
		rows(report.Table{ID: "service-idle", Title: "Memory of the server for each idle connection", RowName: "connection", Detail: true, Columns: []report.Column{
			{ID: "used", Title: "heap and stacks", Unit: "KiB", Better: report.Less},
			{ID: "resident", Title: "resident", Unit: "KiB", Better: report.Less},
			{ID: "goroutines", Title: "goroutines", Better: report.Less},
		}}, "", idleRow),
	}
}

func targets(loads []*measure.Load, resting *measure.Load) (all []report.Target) {
	find := func(row, at string) *measure.Load { return measure.Find(loads, row, at) }
	for _, t := range []struct {
		at, text string
		least    float64
	}{
		{"1", "ID over RESP without pipelining: at least 1× the requests per second of Redis' INCR", 1},
		{"16", "ID over RESP in pipelines of 16: at least 0.8× Redis' INCR", 0.8},
		{"64", "ID over RESP in pipelines of 64: at least 1.3× Redis' INCR", 1.3},
	} {
		all = append(all, find(idRow, t.at).Pair("wall").Rates().Judge(report.Target{ID: "service-resp-" + t.at, Text: t.text, Unit: "×", Want: t.least}))
	}
	target := func(id, text, unit string, want float64, atMost bool, got report.Cell) {
		all = append(all, report.Target{ID: "service-" + id, Text: text, Unit: unit, Want: want, AtMost: atMost, Got: report.Cell{Samples: got.Samples}}.Judge())
	}
	millions := func(ns float64) float64 { return 1e3 / ns }
	target("resp-rate", "ID over RESP in pipelines of 64: at least 1 million IDs per second", "million/s", 1, false, find(idRow, "64").Of("wall", millions))
	target("resp-p99", "ID over RESP without pipelining: 99% of the requests within 2 ms", "ms", 2, true, find(idRow, "1").Of("p99", nil))
	target("ids", "IDS 1000 over RESP: at least 10 million IDs per second", "million/s", 10, false, find(idsRow, "").Of("wall", millions))
	target("http", "HTTP with n=1000: at least 10 million IDs per second", "million/s", 10, false, find(webRow, "").Of("wall", millions))
	all = append(all, find(takeRow, "").Pair("wall").Rates().Judge(report.Target{ID: "service-unary", Text: "gRPC, one ID per call: at least 0.9× the calls per second of an empty handler", Unit: "×", Want: 0.9}))
	ours := find(clientRow, "")
	var more report.Cell
	for i, ns := range ours.Figures["ns"] {
		if library := find(libraryRow, "").Figures["ns"]; i < len(library) {
			more.Samples = append(more.Samples, ns-library[i])
		}
	}
	target("next", "Next of the client, one million calls per second: at most 10 ns more than the library's", "ns", 10, true, more)
	target("next-allocs", "Next of the client: 0 allocations, in whole ones as Go's benchmarks count them", "", 0, true, ours.Of("allocs", func(n float64) float64 { return float64(int(n)) }))
	target("next-local", "Next of the client, one million calls per second: at least 99.9% touch no network", "%", 99.9, false, ours.Of("local", nil))
	target("idle", "10,000 idle RESP connections: at most 20 KiB of the server's memory for each", "KiB", 20, true, resting.Of("used", nil))
	return all
}
