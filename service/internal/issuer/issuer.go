// Package issuer answers requests for IDs and numbers, whatever protocol they came by. A request goes one way:
//
//  1. accepted: the listener of package service has room for its connection. The server of the protocol parses it, and
//     refuses what is larger than package limit allows.
//  2. known: [Issuer.Bearer] or [Issuer.Authenticate] finds its [Client], and [Peer.Known] counts the connection.
//  3. within its limits: [Issuer.Serve] counts the calls of the client, and the methods for IDs and numbers take what is
//     asked for off its rate.
//  4. answered: by these methods, or by a [Refusal], which each protocol says in its words.
//  5. counted: [Observer.Done] counts and logs it.
//
// A pipeline of the Redis protocol goes the same way, for all its commands at once.
package issuer

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// Config has the parts of an Issuer, and the settings of all servers. Those that service.Config has under the same name
// are described there, and checked: each setting has its value, and none stands for a default.
type Config struct {
	seam.Serve

	Generator           *generator.Generator
	Store               stores.Store
	Sequences           []sequence.Option
	Strategy, StoreName string
	Logger              *slog.Logger
	TLS                 *tls.Config
	Clients             []*Client // empty: anybody may do anything
	Rules               []Rule    // the first that fits counts
}

// Rule says how a sequence whose name begins with Prefix is created when it is first asked for.
type Rule struct {
	Prefix     string
	Definition sequence.Definition
}

// Issuer answers requests. Its methods are safe for concurrent use.
type Issuer struct {
	*Observer
	config   Config
	layout   snowflake.Layout
	timeout  error       // of every request
	draining atomic.Bool // set once, by Drain: no request that comes later is served

	setting sync.Mutex             // held by SetClients
	access  atomic.Pointer[access] // replaced as a whole, under setting
	anyone  *Client                // who may do anything; nil if there are clients
	stale   atomic.Bool            // clients that were given later could not be used

	observed interface { // set by Measure, before the first request; nil: there are no metrics
		Add(*sequence.Sequence) (remove func())
	}

	ctx    context.Context // of sequences that are being opened
	cancel context.CancelFunc

	mu        sync.Mutex
	sequences map[string]*entry // none is opened after closing
	recent    list.List         // entries that are open: the one that was used last stands first
	open      map[*account]int  // how many of these each client asked for first; none is 0
	leaving   map[*entry]bool   // entries that are being closed for the room of others
	opening   int               // entries that are being opened
	closing   bool              // set once, by Close
	evicted   atomic.Int64      // sequences that were closed unused, for the room of others; only grows
}

// New returns an Issuer. The caller keeps the generator and the store, and closes them after
// [Issuer.Close].
func New(c Config) *Issuer {
	c.Sequences = slices.Clip(c.Sequences)
	i := &Issuer{
		Observer: NewObserver(c.Logger), config: c, layout: c.Generator.Layout(),
		timeout:   &hidden{fmt.Errorf("not served within %s, the server's timeout of a request", c.Timeout), context.DeadlineExceeded},
		sequences: make(map[string]*entry), open: make(map[*account]int), leaving: make(map[*entry]bool),
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.access.Store(&access{})
	if i.SetClients(c.Clients); len(c.Clients) == 0 {
		i.anyone = NewClient("", [32]byte{}, Rights{IDs: true, Metrics: true, Sequences: []string{"*"}})
	}
	return i
}

// Config returns the configuration.
func (i *Issuer) Config() *Config { return &i.config }

// Layout returns the layout of the IDs.
func (i *Issuer) Layout() *snowflake.Layout { return &i.layout }

// ID returns one ID. It waits as long as the strategy allows, but not beyond ctx: give it
// one of [Issuer.Timeout].
func (i *Issuer) ID(ctx context.Context, c *Client) (snowflake.ID, error) {
	if err := i.admit(c, 1); err != nil {
		return 0, err
	}
	id, err := i.config.Generator.NextContext(ctx)
	if err != nil {
		return 0, i.refuse(err)
	}
	return id, nil
}

// after returns an ID above seen. Whatever the strategy borrows, a seen that nobody checked moves the
// generator, and so all clients, no further ahead than MaxAfter. Where the generator stands further ahead,
// the next ID is the answer, if it is above seen: else each request could move it by a tick.
func (i *Issuer) after(ctx context.Context, seen snowflake.ID) (id snowflake.ID, err error) {
	if _, err := i.Decode(seen); err != nil {
		return 0, err
	}
	if last, err := i.layout.Compose(i.layout.End().Add(-1), i.config.Generator.Node(), 1<<i.layout.SequenceBits-1); err == nil && seen >= last {
		return 0, Refuse(wire.OutOfRange, "the layout has no ID above the seen ID %d: check where that comes from", seen)
	}
	if i.lead(seen) > i.config.MaxAfter {
		stands := i.config.Generator.Stats().Lead
		lead := i.lead(seen)
		if lead <= max(i.config.MaxAfter, stands) {
			id, err = i.config.Generator.NextContext(ctx)
		}
		if err == nil && id <= seen {
			err = &generator.LeadError{Cause: strategies.Behind, Lead: lead, Limit: i.config.MaxAfter, Seen: seen}
		}
	} else {
		id, err = i.config.Generator.NextAfter(ctx, seen)
	}
	if err != nil {
		return 0, i.refuse(err)
	}
	return id, nil
}

// Runs appends runs with n IDs to runs, all above seen unless it is 0. If it fails, those that were
// issued are dropped.
func (i *Issuer) Runs(ctx context.Context, c *Client, n int64, seen snowflake.ID, runs []snowflake.Run) ([]snowflake.Run, error) {
	if err := i.batch("IDs", n, i.config.MaxBatch); err != nil {
		return runs, err
	}
	if err := i.admit(c, n); err != nil {
		return runs, err
	}
	if n > limit.Turn {
		if err := i.turn(ctx, c); err != nil {
			return runs, err
		}
		defer func() { <-c.turn }()
	}
	if seen != 0 { // what follows the first ID is above it; of several, that one is dropped
		id, err := i.after(ctx, seen)
		if err != nil {
			return runs, err
		}
		if n == 1 {
			run := snowflake.Run{First: id, Count: 1, Stride: 1}
			if i.layout.Order == snowflake.TimeSequenceNode {
				run.Stride <<= i.layout.NodeBits
			}
			return append(runs, run), nil
		}
	}
	runs, err := i.config.Generator.NextRuns(ctx, n, runs)
	if err != nil {
		return runs, i.refuse(err)
	}
	return runs, nil
}

// turn waits until no other large request of the client is under way. Those that wait for the clock stand in one queue, with
// a place for each tick that they use up. So all that a client asks for in large parts holds up others for a tick, and not for one per request.
func (i *Issuer) turn(ctx context.Context, c *Client) error {
	select {
	case c.turn <- struct{}{}: // without a look at ctx, which would start its timer
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		if errors.Is(err, context.DeadlineExceeded) && i.Ready() == nil { // else the requests before it do not get on
			return &Refusal{Code: wire.Busy, RetryAfter: time.Second, Err: errTurn}
		}
		return i.refuse(err)
	}
}

var errTurn = fmt.Errorf("requests of a client for more than %d IDs are served one at a time, and the turn of this one did not come in time: ask for fewer", limit.Turn)

// UseWithin returns how long the time of a run is true, counted from the request.
func (i *Issuer) UseWithin(run snowflake.Run) time.Duration {
	return i.config.UseWithin + i.lead(run.First)
}

// Noticed returns by what copies of this memory are noticed, or nothing.
func (i *Issuer) Noticed() string {
	if k, ok := i.config.Generator.Keeper(); ok {
		return cmp.Or(k.Stats().VMClock, "nothing")
	}
	return "nothing"
}

// lead returns how far an ID that was borrowed lies ahead of the clock, or 0. Its time is
// still to come, and stays true for longer.
func (i *Issuer) lead(id snowflake.ID) time.Duration {
	d, err := i.layout.Decode(id)
	if err != nil {
		return 0
	}
	return max(0, d.Time.Sub(i.config.Generator.Clock().Now()))
}

// Decode returns the parts of an ID.
func (i *Issuer) Decode(id snowflake.ID) (snowflake.Decoded, error) {
	d, err := i.layout.Decode(id)
	if err != nil {
		return d, &Refusal{Code: wire.BadInput, Err: err}
	}
	return d, nil
}

// ParseID reads an ID in decimal digits.
func ParseID(text string) (snowflake.ID, error) {
	id, err := snowflake.Parse(text)
	if err != nil {
		return 0, &Refusal{Code: wire.BadInput, Err: err}
	}
	return id, nil
}

// ParseCount reads how many IDs or numbers a request asks for.
func ParseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		// A copy, so that no text of a request is made for the error alone.
		return 0, Refuse(wire.BadInput, "n %.20q is not an integer or out of range: want up to 19 decimal digits", strings.Clone(text))
	}
	return n, nil
}

// Ready returns nil while the generator's grant has a tick left, a call that waits up to the
// timeout would get an ID, and the issuer does not drain. It never asks the store.
func (i *Issuer) Ready() error {
	if i.draining.Load() {
		return ErrDraining
	}
	if err := i.config.Generator.Ready(i.config.Timeout); err != nil {
		r := i.refuse(err)
		wait := r.RetryAfter
		if r.Code != wire.Unavailable {
			wait = max(wait, time.Second)
		}
		return &Refusal{Code: wire.Unavailable, RetryAfter: wait, Err: r.Err}
	}
	if left := i.config.Generator.Stats().Remaining; left < i.layout.Tick {
		return Later(fmt.Errorf("the grant has %s left, and readiness asks for %s: check the store", left, i.layout.Tick))
	}
	return nil
}

// ClockError says how far the wall clock may be off by the kernel's own word, for people and probes.
func (i *Issuer) ClockError() string {
	if off := i.config.Generator.Stats().WallError; off >= 0 {
		return off.String()
	}
	return "unknown"
}

// Live returns nil unless only a restart helps: see [generator.Generator.Err].
func (i *Issuer) Live() error {
	if err := i.config.Generator.Err(); err != nil {
		return &Refusal{Code: wire.Unavailable, Err: &hidden{errEnded, err}}
	}
	return nil
}

// Drain makes [Issuer.Ready] fail. Requests are served until the servers stop.
func (i *Issuer) Drain() { i.draining.Store(true) }

// batch checks how many IDs or numbers a request asks for.
func (i *Issuer) batch(what string, n, most int64) error {
	if n < 1 || n > most {
		return Refuse(wire.BadInput, "asked for %d %s: want 1 to %d in one request", n, what, most)
	}
	return nil
}
