// Package wire measures the service: a server in a process of its own, asked over the Redis
// protocol, gRPC and HTTP, beside a private Redis that counts. Its program must begin with
// [Serve].
package wire

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "service", Title: "The service, beside Redis", Full: 55 * time.Second, Quick: time.Second,
		About: "The server runs in a process of its own on this machine, which its load generator shares. redis-benchmark asks it for one ID per request over 50 connections, and a private Redis for one INCR per request, " +
			"with so many requests in a pipeline as the column says. That Redis saves nothing to its disk. Processor time is that of the server's process. All loads take turns of a fraction of a second, in random order, and ratios are computed round by round. " +
			"The layout is 41/4/18: 262,144 IDs per millisecond, because the default layout ends at 4.096 million IDs per second. " +
			"The load generator of IDS, gRPC and HTTP is this program. The empty handler is a gRPC server in the same process that answers each call with the same ID.",
		Measure: measureService, Verdict: verdict}}
}

// pipelines are how many requests redis-benchmark sends at once.
var pipelines = []int{1, 4, 16, 64, 100}

// Rows of the tables.
const (
	redisRow  = "Redis, INCR"
	idRow     = "tickflake, ID"
	incrRow   = "tickflake, INCR of a segmented sequence"
	idsRow    = "RESP, IDS 1000"
	streamRow = "gRPC, a stream of runs"
	webRow    = "HTTP, n=1000"
	takeRow   = "gRPC, Take of one ID"
	emptyRow  = "gRPC, an empty handler"
)

func pipelined(n int) string { return fmt.Sprint(n) }

func measureService(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	if run.Progress != nil {
		run.Progress(0, 1, "starting servers")
	}
	var s results.Section
	c, err := startChild(ctx)
	if err != nil {
		s.Skipped = fmt.Sprintf("The server does not start: %s.", servers.Reason(err))
		s.Failed = true
		return s
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = c.stop() // on a panic
		}
	}()
	started, stop := servers.All(ctx, wantedRedis)
	defer func() { _ = stop() }() // on a panic
	redis := started[0]
	if redis.Err == nil {
		_, redis.Err = exec.LookPath("redis-benchmark")
	}
	note := fmt.Sprintf("Redis %s.", redis.Version)
	if redis.Err != nil {
		note = fmt.Sprintf("Redis or redis-benchmark does not run here, so what needs it is not measured: %s.", servers.Reason(redis.Err))
	}
	s.Notes = append(s.Notes, note)

	// The connections at rest come first: the memory of a server that has worked is partly
	// garbage that it keeps.
	resting := measureIdle(ctx, c, idleConnections(run))
	subjects, closers := list(ctx, c, redis)
	calls := newCalls(ctx, c)
	measureAll(ctx, run, began, subjects, calls)

	s.Tables = append(tables(subjects), calls.table(), resting.table())
	s.Targets = append(targets(subjects), append(calls.targets(), resting.target())...)
	var errs []error
	for _, closer := range append(closers, calls.close, c.stop, stop) {
		errs = append(errs, closer())
	}
	stopped = true
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		s.Notes = append(s.Notes, fmt.Sprintf("Stopping the servers failed: %s.", servers.Reason(err)))
	}
	return s
}

// list returns the loads. The caller calls the closers.
func list(ctx context.Context, c *child, redis *servers.Server) (all []*subject, closers []func() error) {
	add := func(s subject, err error) {
		if s.unit == 0 {
			s.unit = 1
		}
		if s.err = err; err == nil && s.cpu == nil {
			s.cpu = c.cpu
		}
		all = append(all, &s)
	}
	var counter func(context.Context) (time.Duration, error)
	if redis.Err == nil {
		client, err := redis.Redis()
		if redis.Err = err; err == nil {
			counter, closers = redisCPU(client), append(closers, client.Close)
		}
	}
	for _, p := range pipelines {
		on := func(addr string, login []string, command ...string) load {
			return func(ctx context.Context, n int) (turn, error) {
				return benchmark(ctx, addr, login, connections, p, n, command...)
			}
		}
		least := 200 * p
		add(subject{row: redisRow, column: pipelined(p), unit: least, cpu: counter, load: on(redis.Addr, []string{"--user", loader, "-a", "none"}, "INCR", counted)}, redis.Err)
		add(subject{row: idRow, column: pipelined(p), unit: least, load: on(c.RESP, nil, "ID")}, redis.Err)
		add(subject{row: incrRow, column: pipelined(p), unit: least, load: on(c.RESP, nil, "INCR", counted)}, redis.Err)
	}
	for _, of := range []struct {
		addr, row string
		unit      int
		load      func(*rpc) load
	}{
		{c.GRPC, streamRow, credit, func(r *rpc) load { return r.stream }},
		{c.GRPC, takeRow, callers, func(r *rpc) load { return r.unary }},
		{c.Empty, emptyRow, callers, func(r *rpc) load { return r.unary }},
	} {
		r, err := newRPC(of.addr)
		if err == nil {
			closers = append(closers, r.close)
		}
		add(subject{row: of.row, unit: of.unit, load: of.load(r)}, err)
	}
	for _, of := range []struct {
		addr, row string
		client    *batches
	}{{c.RESP, idsRow, overRESP()}, {c.HTTP, webRow, overHTTP(c.HTTP)}} {
		err := of.client.connect(ctx, of.addr)
		closers = append(closers, of.client.close)
		add(subject{row: of.row, unit: batch, load: of.client.take}, err)
	}
	return all, closers
}

// measureAll gives all loads their turns until run.Budget is used up, counted from began.
func measureAll(ctx context.Context, run *measure.Run, began time.Time, subjects []*subject, c *calls) {
	box, least := 120*time.Millisecond, 3
	if run.Quick {
		box, least = 10*time.Millisecond, 1
	}
	inner := *run
	inner.Budget -= time.Second // to stop the servers
	if run.Quick {
		inner.Budget = run.Budget - 200*time.Millisecond
	}
	var names []string
	var turns []func()
	for _, s := range subjects {
		s.measure(ctx, box/4, false) // to warm up
		if !run.Quick {
			s.measure(ctx, box, false) // to know how many operations make a turn
		}
		names, turns = append(names, s.name()), append(turns, func() { s.measure(ctx, box, true) })
	}
	for _, k := range c.all {
		names, turns = append(names, k.name), append(turns, func() { c.measure(ctx, k, box) })
	}
	inner.Rounds(ctx, began, least, names, func(i int) { turns[i]() }, neighbours(subjects)...)
}

// neighbours are the indices of subjects that are compared: ours and Redis with the same
// pipeline, and the call with the empty handler.
func neighbours(subjects []*subject) [][]int {
	with := func(belongs func(*subject) bool) (group []int) {
		for i, s := range subjects {
			if belongs(s) {
				group = append(group, i)
			}
		}
		return group
	}
	groups := [][]int{with(func(s *subject) bool { return s.row == takeRow || s.row == emptyRow })}
	for _, p := range pipelines {
		groups = append(groups, with(func(s *subject) bool { return s.column == pipelined(p) }))
	}
	return groups
}

// find returns the subject of a cell. It is empty if there is none.
func find(subjects []*subject, row, column string) *subject {
	i := slices.IndexFunc(subjects, func(s *subject) bool { return s.row == row && s.column == column })
	if i < 0 {
		return &subject{}
	}
	return subjects[i]
}
