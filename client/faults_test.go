package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// away is the fault of a server that cannot serve.
var away = fault{err: status.Error(codes.Unavailable, "the store is away")}

// names is the fault of a server that names a delay.
func names(code codes.Code, after time.Duration) fault {
	s, _ := status.New(code, "too fast").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	return fault{err: s.Err()}
}

// busy is the fault of a server that rejects requests, and names a delay.
func busy(after time.Duration) fault { return names(codes.ResourceExhausted, after) }

// met is what a call meets, and what comes of it.
type met struct {
	first, second fault         // of the two servers
	alone         bool          // there is no second server
	healed        time.Duration // after which the servers have no fault, or 0
	only          string        // the method that has the fault, or "" for both
	want          []error
	text          string        // in the error, or in that of the first server, which is not asked for now
	took          time.Duration // and up to a half less or more
	failures      int           // of the client's requests, at least
}

// TestFaults guards what a call of Next, and one of Number, do when servers have a fault: whether
// the second server serves it, its error, and how long it takes.
func TestFaults(t *testing.T) {
	t.Parallel()
	late, silent := fault{delay: 40 * time.Millisecond}, fault{hang: true}
	rows := map[string]met{
		"late":                    {first: late, only: "Take", alone: true, took: late.delay},
		"later than IDs are true": {first: fault{delay: late.delay, change: func(r *tickflakev1.TakeResponse) { r.Runs[0].UseWithin = durationpb.New(20 * time.Millisecond) }}, only: "Take", alone: true, want: []error{ErrUnavailable}, text: "its answer took 40ms, and its IDs are to be used within 20ms", took: defaultTimeout, failures: 5},
		"silent":                  {first: silent, took: defaultTimeout, failures: 1},
		"both silent":             {first: silent, second: silent, want: []error{ErrUnavailable}, took: 2 * defaultTimeout, failures: 2},
		"away":                    {first: away, text: "the store is away", failures: 1},
		"both away for a while":   {first: away, second: away, healed: time.Second, took: 3 * time.Second / 2, failures: 6},
		"both away":               {first: away, second: away, want: []error{ErrUnavailable}, text: "server-2:9380: the store is away", took: defaultTimeout, failures: 10},
		"away, naming an hour":    {first: names(codes.Unavailable, time.Hour), alone: true, healed: time.Second, took: 3 * time.Second / 2, failures: 5},
		"busy":                    {first: busy(time.Hour), text: "too fast", failures: 1},
		"busy for a while":        {first: busy(400 * time.Millisecond), alone: true, healed: 350 * time.Millisecond, took: 400 * time.Millisecond, failures: 1},
		"busy beyond the timeout": {first: busy(10 * time.Second), alone: true, want: []error{ErrUnavailable, ErrBusy}, text: "too fast", took: defaultTimeout, failures: 1},
		"an answer without a run": {first: fault{change: func(r *tickflakev1.TakeResponse) { r.Runs = nil }}, only: "Take", text: "answer", failures: 1},
		"an answer with too many": {first: fault{change: func(r *tickflakev1.TakeResponse) { r.Runs = append(r.Runs, r.Runs[0]) }}, only: "Take", text: "answer", failures: 1},
	}
	for name, change := range map[string]func(*tickflakev1.Run){
		"more than asked for": func(r *tickflakev1.Run) { r.Count++ },
		"no IDs":              func(r *tickflakev1.Run) { r.First, r.Count = r.First+1, 0 },
		"a negative count":    func(r *tickflakev1.Run) { r.Count = -1 },
		"a negative ID":       func(r *tickflakev1.Run) { r.First = -5 },
		"ID 0":                func(r *tickflakev1.Run) { r.First = 0 },
		"beyond 63 bits":      func(r *tickflakev1.Run) { r.First, r.Stride = 1<<62, 1<<61 },
		"stride 0":            func(r *tickflakev1.Run) { r.Stride = 0 },
		"another stride":      func(r *tickflakev1.Run) { r.Stride = 2 },
		"two nodes":           func(r *tickflakev1.Run) { r.First |= 0xfff },
		"no time to use it":   func(r *tickflakev1.Run) { r.UseWithin = nil },
	} {
		change := func(r *tickflakev1.TakeResponse) { change(r.Runs[0]) }
		rows["a run with "+name] = met{first: fault{change: change}, only: "Take", text: "answer", failures: 1}
	}
	for name, change := range map[string]func(*tickflakev1.NumberResponse){ // the right one has 1 to 5
		"no numbers":         func(r *tickflakev1.NumberResponse) { r.Reset() },
		"stride 0":           func(r *tickflakev1.NumberResponse) { r.Stride = 0 },
		"a negative stride":  func(r *tickflakev1.NumberResponse) { r.First, r.Last, r.Stride = 5, 1, -2 },
		"a count of 2":       func(r *tickflakev1.NumberResponse) { r.Count = 2 },
		"two of three":       func(r *tickflakev1.NumberResponse) { r.Last = 3 },
		"a last that is off": func(r *tickflakev1.NumberResponse) { r.Last = 6 },
		"negative numbers":   func(r *tickflakev1.NumberResponse) { r.First, r.Last = -5, -1 },
		"more than it has":   func(r *tickflakev1.NumberResponse) { r.First, r.Last, r.Stride = 0, 1<<63-1, 1 },
	} {
		rows["numbers with "+name] = met{first: fault{number: change}, only: "Number", text: "not valid", failures: 1}
	}
	for code, want := range map[codes.Code]error{ // other servers would answer the same
		codes.OutOfRange: ErrOutOfRange, codes.NotFound: ErrNotFound, codes.Unauthenticated: ErrDenied,
		codes.PermissionDenied: ErrDenied, codes.InvalidArgument: ErrRefused, codes.FailedPrecondition: ErrRefused,
	} {
		err := status.Error(code, "because of that")
		rows[code.String()] = met{first: fault{err: err}, want: []error{want, err}, text: "because of that"}
	}
	for name, row := range rows {
		if row.only != "Number" {
			t.Run(name, func(t *testing.T) { row.test(t, forIDs) })
		}
		if row.only != "Take" {
			t.Run(name+", numbers", func(t *testing.T) { row.test(t, forNumbers) })
		}
	}
}

func (m met) test(t *testing.T, k kind) {
	virtual(t, 2, func(t *testing.T, s []*fake) {
		if m.alone {
			s = s[:1]
		}
		c := open(t, s)
		c.level = 10 // it asks for 10 IDs at once
		for i, f := range []fault{m.first, m.second}[:len(s)] {
			s[i].has(f)
			if m.healed != 0 {
				time.AfterFunc(m.healed, func() { s[i].has(fault{}) })
			}
		}
		call := func() error {
			if k == forNumbers {
				_, _, err := c.Numbers(t.Context(), "orders", 3)
				return err
			}
			_, err := c.Next(t.Context())
			return err
		}
		began := time.Now()
		err := call()
		assert.InDelta(t, m.took, time.Since(began), float64(m.took/2))
		if stats := c.Stats(); m.failures == 0 {
			assert.Zero(t, stats.Failures)
		} else {
			assert.GreaterOrEqual(t, stats.Failures, uint64(m.failures))
		}
		if m.want == nil {
			require.NoError(t, err)
			c.mu.Lock()
			preferred := c.routes[k].preferred
			err = c.routes[k].health[0].err
			c.mu.Unlock()
			if m.healed == 0 {
				assert.Equal(t, !m.alone, preferred == 1, "calls stay with the server that served")
			}
		}
		for _, want := range m.want {
			assert.ErrorIs(t, err, want)
		}
		if m.text != "" {
			assert.ErrorContains(t, err, m.text)
		}
		for range 3 { // later calls do not wait, except for a request that runs
			began = time.Now()
			assert.Equal(t, m.want == nil, call() == nil)
			assert.Less(t, time.Since(began), 2*defaultTimeout)
			if !m.first.hang {
				assert.Less(t, time.Since(began), time.Second)
			}
		}
		for _, f := range s {
			f.has(fault{})
		}
		time.Sleep(2 * defaultTimeout) // servers are asked again
		if m.first.err == nil || status.Code(m.first.err) != codes.ResourceExhausted {
			require.NoError(t, call(), "a rare caller does not meet an old failure")
		}
	})
}

// TestSkew guards that calls wait for a server whose clock is behind that of the one that stops. Where it is too far
// behind, the error names it, and it is asked again before it is there.
func TestSkew(t *testing.T) {
	virtual(t, 2, func(t *testing.T, s []*fake) {
		s[0].skew = 600 * time.Millisecond
		c := open(t, s)
		next(t, c)
		s[0].server.Stop()
		_, took := next(t, c)
		assert.InDelta(t, s[0].skew, took, float64(100*time.Millisecond))

		s[0].skew = time.Hour
		s[0].listen()
		c = open(t, s)
		next(t, c)
		s[0].server.Stop()
		began := time.Now()
		_, err := c.Next(t.Context())
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "server-2:9380: its IDs are 59m58")
		assert.ErrorContains(t, err, "server-1:9380")
		assert.InDelta(t, defaultTimeout, time.Since(began), float64(time.Millisecond))
		s[1].set(func() { s[1].skew = time.Hour })
		time.Sleep(longestLag)
		next(t, c)
	})
}

// TestDeadConnection guards that a connection which the network has forgotten is found and
// replaced, where there is no other server.
func TestDeadConnection(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		for range 20 {
			next(t, c)
			time.Sleep(time.Second)
		}
		s[0].silent.Store(true)
		s[0].set(func() { s[0].silent = new(atomic.Bool) })
		began := time.Now()
		for _, err := c.Next(t.Context()); err != nil; _, err = c.Next(t.Context()) {
			require.Less(t, time.Since(began), 30*time.Second)
			time.Sleep(100 * time.Millisecond) // an error may come at once
		}
	})
}

// TestDelays guards that requests which fail at the same time count as one failure, and that the
// delay of a server which has served is the first one again. No delay is above a quarter of the timeout.
func TestDelays(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		for range 3 {
			for range 8 {
				c.failed(forIDs, c.servers[0], 1, &failure{server: "server-1", cause: errors.New("away")})
			}
			assert.LessOrEqual(t, c.routes[forIDs].due(c.now(), 1)-c.now(), int64(firstDelay))
			c.routes[forIDs].roundFailed(c.now())
			c.succeeded(forIDs, c.servers[0], 1)
			assert.Zero(t, c.routes[forIDs].health[0].until)
			assert.NoError(t, c.away(forIDs, c.now()), "the outage is over, and the next one begins anew")
		}
		for range 12 {
			c.failed(forIDs, c.servers[0], 1, &failure{server: "server-1", cause: errors.New("away")})
			due := time.Duration(c.routes[forIDs].due(c.now(), 1) - c.now())
			assert.LessOrEqual(t, due, defaultTimeout/4)
			time.Sleep(due)
		}
		c.succeeded(forIDs, c.servers[0], 1)
		c.failed(forIDs, c.servers[0], 1, &failure{server: "server-1", kind: ErrBusy, cause: ErrBusy, after: time.Second})
		c.failed(forIDs, c.servers[0], 1, &failure{server: "server-1", cause: errors.New("away")})
		assert.LessOrEqual(t, c.routes[forIDs].due(c.now(), 1)-c.now(), int64(firstDelay))
	})
}

// A server whose limit is lower since a reload is asked for its limits again, and no call fails.
func TestLoweredBatch(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		ids := make([]snowflake.ID, 1000)
		nextN(t, c, ids)
		s[0].set(func() { s[0].maxBatch = 7 })
		time.Sleep(2 * time.Second) // what was fetched is too old
		nextN(t, c, ids)
		assert.Equal(t, 2, s[0].asked("Describe"))
	})
}

// A delay is for requests of a size. Where a rate rejects a large one, smaller ones are asked for, the calls for one ID
// go on, and the server is not asked for large ones before the delay is over.
func TestDelayOfALargeRequest(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		next(t, c)
		s[0].has(fault{refuse: func(n int64) error {
			if n > 100 {
				return busy(20 * time.Second).err
			}
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		large := make(chan error, 1)
		go func() {
			_, err := c.NextN(ctx, make([]snowflake.ID, 10_000))
			large <- err
		}()
		began := time.Now()
		for range 10 {
			time.Sleep(time.Second) // what was fetched is too old
			_, took := next(t, c)
			assert.Less(t, took, time.Second)
		}
		assert.Less(t, time.Since(began), 20*time.Second)
		require.NoError(t, <-large, "it gets them in parts")
		refused := 0
		for _, n := range s[0].counts {
			if n > 100 {
				refused++
			}
		}
		assert.LessOrEqual(t, refused, 8, "10,000, and each half")
	})
}
