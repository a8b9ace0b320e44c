// Package service measures the service: the real server in a process of its own, asked over the
// Redis protocol and HTTP and by its Go client, beside a private Redis that counts.
package service

import (
	"context"
	"fmt"
	"math"
	"os/exec"
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
			"with so many requests in a pipeline as the column says. That Redis saves nothing to its disk. All loads take turns of a fraction of a second, in random order, and ratios are computed round by round. " +
			"The layout is 41/4/18: 262,144 IDs per millisecond, because the default layout ends at 4.096 million IDs per second. " +
			"The load generator of IDS and HTTP is this program.",
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
	libraryRow = "the library's NextContext"
	clientRow  = "the client's Next"
)

// counted is the sequence of the server and the key of Redis.
const counted = "orders"

func measureService(ctx context.Context, run *measure.Run) report.Section {
	return run.On(ctx, []servers.Wanted{{Kind: servers.Directory}, wantedRedis}, func(started []*servers.Server, s *report.Section) {
		var open measure.Closers
		defer func() { _ = open.Close() }() // on a panic
		server, err := start(ctx, started[0].URL)
		if err != nil {
			s.Skipped, s.Failed = fmt.Sprintf("The server does not start: %s.", servers.Reason(err)), true
			return
		}
		open.Add(server.Close)
		redis := started[1]
		if _, err := exec.LookPath("redis-benchmark"); redis.Err == nil && err != nil {
			redis.Err = err
			s.Note("redis-benchmark does not run here, so what needs it is not measured: %s.", servers.Reason(err))
		}
		loads := list(ctx, server, redis, measure.Pick(run, 10*time.Millisecond, 120*time.Millisecond), &open)
		run.Measure(ctx, measure.Pick(run, 1, 3), 0, loads...)
		s.Tables, s.Targets = tables(loads), targets(loads)
		measure.Failed(s, loads)
		if err := open.Close(); err != nil && ctx.Err() == nil {
			s.Note("Stopping the server failed: %s.", servers.Reason(err))
		}
	})
}

// start runs the server, with its sequence.
func start(ctx context.Context, store string) (*program.Server, error) {
	if _, err := program.Tickflake(ctx, false, "sequence", "create", counted, "--store", store); err != nil {
		return nil, err
	}
	return program.Serve(ctx, program.ServeConfig{Store: store, Args: []string{"--layout", layout}})
}

// list returns all loads.
func list(ctx context.Context, server *program.Server, redis *servers.Server, box time.Duration, open *measure.Closers) (all []*measure.Load) {
	add := func(row, at string, group report.Group, unit int, base *measure.Load, err error, do measure.Do) *measure.Load {
		b := &measure.Batch{Do: []measure.Do{do}, Unit: unit, Target: box, LeadIn: -1}
		l := &measure.Load{Row: row, At: at, Group: group, Turn: b.Turn, Base: base, Err: err}
		all = append(all, l)
		return l
	}
	for _, p := range pipelines {
		at, least := fmt.Sprint(p), 200*p
		base := add(redisRow, at, report.Peers, least, nil, redis.Err, benchmark(redis.Addr, p, "--user", loader, "-a", "none", "INCR", counted))
		add(idRow, at, report.Ours, least, base, redis.Err, benchmark(server.RESP, p, "ID"))
		add(incrRow, at, report.Ours, least, base, redis.Err, benchmark(server.RESP, p, "INCR", counted))
	}
	add(idsRow, "", report.Ours, batch, nil, nil, ids(server.RESP))
	add(webRow, "", report.Ours, batch, nil, nil, post(fmt.Sprintf("http://%s/v1/ids?n=%d", server.HTTP, batch)))
	library, ours := paced(ctx, server, box, open)
	return append(all, library, ours)
}

func tables(loads []*measure.Load) []report.Table {
	requests := report.Table{ID: "service-resp", Title: "One ID per request over the Redis protocol, 50 connections: requests per second", RowName: "request", Base: redisRow}
	for _, p := range pipelines {
		column := report.Column{ID: fmt.Sprint(p), Title: fmt.Sprintf("pipelines of %d", p), Unit: "req/s", Better: report.More}
		if p == 1 {
			column.Title = "no pipelining"
		}
		requests.Columns = append(requests.Columns, column)
	}
	requests = measure.Grid(requests, loads, perSecond)
	rows := func(t report.Table, names ...string) report.Table {
		var some []*measure.Load
		for _, name := range names {
			some = append(some, measure.Find(loads, name, ""))
		}
		return measure.Rows(t, some, func(l *measure.Load, column string) report.Cell {
			if column == "rate" {
				return perSecond(l)
			}
			return l.Of(column)
		})
	}
	as := func(at string) string { return requests.Cell(idRow, at).Against(requests.Cell(redisRow, at)).Value() }
	requests.Say("The server answers %s requests for one ID per second without pipelining, %s as many as Redis answers INCR, and %s in pipelines of 64, %s as many.",
		requests.Cell(idRow, "1"), as("1"), requests.Cell(idRow, "64"), as("64"))
	return []report.Table{
		requests,
		rows(report.Table{ID: "service-batches", Title: "Many IDs per request", RowName: "request", Columns: []report.Column{
			{ID: "rate", Title: "rate", Unit: "IDs/s", Better: report.More},
		}}, idsRow, webRow),
		rows(report.Table{ID: "service-client", Title: "One ID per call in Go, one million calls per second", RowName: "call", Columns: []report.Column{
			{ID: "ns", Title: "time, median of bursts", Unit: "ns", Better: report.Less},
			{ID: "allocs", Title: "allocations, with those of requests", Unit: "per call", Better: report.Less},
			{ID: "local", Title: "calls that touch no network", Unit: "%", Better: report.More},
		}}, libraryRow, clientRow),
	}
}

// perSecond is the rate of a load.
func perSecond(l *measure.Load) report.Cell {
	return l.Of("wall").By(func(ns float64) float64 { return 1e9 / ns })
}

func targets(loads []*measure.Load) []report.Target {
	find := func(row, at string) *measure.Load { return measure.Find(loads, row, at) }
	asRedis := func(at string) report.Cell { return find(idRow, at).Pair("wall").By(report.Inverse) }
	millions := func(row, at string) report.Cell {
		return perSecond(find(row, at)).By(func(rate float64) float64 { return rate / 1e6 })
	}
	ours := find(clientRow, "")
	more := ours.Of("ns").Minus(find(libraryRow, "").Of("ns"))
	whole := ours.Of("allocs").By(math.Floor)
	return []report.Target{
		{ID: "service-resp-1", Text: "ID over RESP without pipelining: at least 1× the requests per second of Redis' INCR", Unit: "×", Want: 1, Got: asRedis("1")},
		{ID: "service-resp-16", Text: "ID over RESP in pipelines of 16: at least 0.8× Redis' INCR", Unit: "×", Want: 0.8, Got: asRedis("16")},
		{ID: "service-resp-64", Text: "ID over RESP in pipelines of 64: at least 1.3× Redis' INCR", Unit: "×", Want: 1.3, Got: asRedis("64")},
		{ID: "service-resp-rate", Text: "ID over RESP in pipelines of 64: at least 1 million IDs per second", Unit: "million/s", Want: 1, Got: millions(idRow, "64")},
		{ID: "service-resp-p99", Text: "ID over RESP without pipelining: 99% of the requests within 2 ms", Unit: "ms", Want: 2, AtMost: true, Got: find(idRow, "1").Of("p99")},
		{ID: "service-ids", Text: "IDS 1000 over RESP: at least 10 million IDs per second", Unit: "million/s", Want: 10, Got: millions(idsRow, "")},
		{ID: "service-http", Text: "HTTP with n=1000: at least 10 million IDs per second", Unit: "million/s", Want: 10, Got: millions(webRow, "")},
		{ID: "service-next", Text: "Next of the client, one million calls per second: at most 10 ns more than the library's", Unit: "ns", Want: 10, AtMost: true, Got: more},
		{ID: "service-next-allocs", Text: "Next of the client: 0 allocations, in whole ones as Go's benchmarks count them", AtMost: true, Got: whole},
		{ID: "service-next-local", Text: "Next of the client, one million calls per second: at least 99.9% touch no network", Unit: "%", Want: 99.9, Got: ours.Of("local")},
	}
}
