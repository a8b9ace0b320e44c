package wire

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func tables(subjects []*subject) []results.Table {
	const micro = 1e-3
	perMicro := func(ns float64) float64 { return ns * micro }
	rates := curve(subjects, "service-resp", "One ID per request over the Redis protocol, 50 connections: requests per second", "req/s", results.More,
		func(s *subject) []float64 { return s.rate })
	rates.Charts = []results.Chart{{ID: "service-resp", Title: "Requests per second, one ID each", Lines: true, XLabel: "requests in a pipeline", YLabel: "requests per second", LogX: true, LogY: true}}
	cost := curve(subjects, "service-cpu", "Processor time of the server for such a request", "µs", results.Less,
		func(s *subject) []float64 { return measure.Each(s.cost, perMicro) })

	latency := results.Table{ID: "service-latency", Title: "Time of such a request, without pipelining", RowName: "request", Base: redisRow, Detail: true, Columns: []results.Column{
		{ID: "p50", Title: "median", Unit: "ms", Better: results.Less},
		{ID: "p99", Title: "99%", Unit: "ms", Better: results.Less},
	}}
	for _, row := range []string{redisRow, idRow, incrRow} {
		s := find(subjects, row, pipelined(1))
		latency.Rows = append(latency.Rows, s.asRow(results.Cell{Samples: s.p50}, results.Cell{Samples: s.p99}))
	}

	batches := results.Table{ID: "service-batches", Title: "Many IDs per request", RowName: "request", Columns: []results.Column{
		{ID: "rate", Title: "rate", Unit: "IDs/s", Better: results.More},
		{ID: "cpu", Title: "processor time of the server", Unit: "ns/ID", Better: results.Less},
	}}
	for _, row := range []string{idsRow, streamRow, webRow} {
		s := find(subjects, row, "")
		batches.Rows = append(batches.Rows, s.asRow(results.Cell{Samples: s.rate}, results.Cell{Samples: s.cost}))
	}

	unary := results.Table{ID: "service-unary", Title: fmt.Sprintf("One ID per call over gRPC, %d callers", callers), RowName: "call", Base: emptyRow, Columns: []results.Column{
		{ID: "rate", Title: "rate", Unit: "calls/s", Better: results.More},
		{ID: "cpu", Title: "processor time of the server", Unit: "µs", Better: results.Less},
	}}
	for _, row := range []string{emptyRow, takeRow} {
		s := find(subjects, row, "")
		unary.Rows = append(unary.Rows, s.asRow(results.Cell{Samples: s.rate}, results.Cell{Samples: measure.Each(s.cost, perMicro)}))
	}
	return []results.Table{rates, cost, latency, batches, unary}
}

// curve is a table with a column for each pipeline.
func curve(subjects []*subject, id, title, unit string, better results.Better, of func(*subject) []float64) results.Table {
	t := results.Table{ID: id, Title: title, RowName: "request", Base: redisRow}
	for _, p := range pipelines {
		title := fmt.Sprintf("pipelines of %d", p)
		if p == 1 {
			title = "no pipelining"
		}
		t.Columns = append(t.Columns, results.Column{ID: pipelined(p), Title: title, Unit: unit, Better: better, X: float64(p)})
	}
	for _, name := range []string{redisRow, idRow, incrRow} {
		var cells []results.Cell
		note := &subject{row: name}
		for _, p := range pipelines {
			s := find(subjects, name, pipelined(p))
			cells = append(cells, results.Cell{Samples: of(s)})
			if s.err != nil {
				note = s
			}
		}
		t.Rows = append(t.Rows, note.asRow(cells...))
	}
	return t
}

// asRow is the subject's row in a table.
func (s *subject) asRow(cells ...results.Cell) results.Row {
	group := results.Ours
	switch s.row {
	case redisRow:
		group = results.Peers
	case emptyRow:
		group = results.Floor
	}
	return results.Row{Name: s.row, Group: group, Note: s.reason(), Cells: cells}
}

func targets(subjects []*subject) []results.Target {
	of := func(row, column string) *subject { return find(subjects, row, column) }
	ratio := func(id, text string, want float64, subject, base *subject) results.Target {
		t := results.Target{ID: id, Text: text, Unit: "×", Want: want}
		return measure.Compare(subject.rates(), base.rates()).Judge(t)
	}
	millions := func(id, text string, want float64, s *subject) results.Target {
		t := results.Target{ID: id, Text: text, Unit: "million/s", Want: want}
		t.Got.Samples = measure.Each(s.rate, func(perSecond float64) float64 { return perSecond / 1e6 })
		return t.Judge(nil)
	}
	var all []results.Target
	for _, t := range []struct {
		pipeline int
		least    float64
		text     string
	}{
		{1, 1, "ID over RESP without pipelining: at least 1× the requests per second of Redis' INCR"},
		{16, 0.8, "ID over RESP in pipelines of 16: at least 0.8× Redis' INCR"},
		{64, 1, "ID over RESP in pipelines of 64: at least 1× Redis' INCR"},
	} {
		all = append(all, ratio(fmt.Sprintf("service-resp-%d", t.pipeline), t.text, t.least, of(idRow, pipelined(t.pipeline)), of(redisRow, pipelined(t.pipeline))))
	}
	return append(all,
		millions("service-resp-rate", "ID over RESP in pipelines of 64: at least 1 million IDs per second", 1, of(idRow, pipelined(64))),
		results.Target{ID: "service-resp-p99", Text: "ID over RESP without pipelining: 99% of the requests within 2 ms", Unit: "ms", Want: 2, AtMost: true,
			Got: results.Cell{Samples: of(idRow, pipelined(1)).p99}}.Judge(nil),
		millions("service-ids", "IDS 1000 over RESP: at least 10 million IDs per second", 10, of(idsRow, "")),
		millions("service-stream", "A gRPC stream of runs: at least 10 million IDs per second", 10, of(streamRow, "")),
		millions("service-http", "HTTP with n=1000: at least 10 million IDs per second", 10, of(webRow, "")),
		ratio("service-unary", "gRPC, one ID per call: at least 0.9× the calls per second of an empty handler", 0.9, of(takeRow, ""), of(emptyRow, "")),
	)
}

func verdict(s results.Section) string {
	t := s.Table("service-resp")
	ours, theirs := t.Cell(idRow, "64").Median(), t.Cell(redisRow, "64").Median()
	if !(ours > 0 && theirs > 0) {
		return ""
	}
	one, oneOfTheirs := t.Cell(idRow, "1").Median(), t.Cell(redisRow, "1").Median()
	return fmt.Sprintf("The server answers %s requests for one ID per second without pipelining, %s as many as Redis answers INCR, and %s in pipelines of 64, %s as many.",
		results.Figure(one), results.Times(one/oneOfTheirs), results.Figure(ours), results.Times(ours/theirs))
}
