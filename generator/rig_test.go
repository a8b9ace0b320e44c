package generator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// noon is when the tests' clocks begin.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// inBubble runs test in a synctest bubble from noon on, where the machine's time passes while every
// goroutine waits.
func inBubble(t *testing.T, test func(t *testing.T)) { inBubbleFrom(t, noon, test) }

// inBubbleFrom is inBubble from another instant on.
func inBubbleFrom(t *testing.T, begin time.Time, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begin))
		test(t)
	})
}

// wallClock is the machine's clock. It can be stepped and stopped, and is waited for in the
// machine's time.
type wallClock struct {
	mu      sync.Mutex
	offset  time.Duration
	stopped bool
	now     time.Time // if it is stopped
}

func (c *wallClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return c.now
	}
	return time.Now().Round(0).Add(c.offset)
}

func (c *wallClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.now = c.now.Add(d)
}

func (c *wallClock) stop(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped, c.now = true, at
}

// handClock stands still until it is stepped. A wait for it moves it by the length of the wait,
// unless it is frozen, or mute: then no wait ends.
type handClock struct {
	wallClock
	frozen, mute bool
	waits        []time.Duration
}

func newHandClock() *handClock {
	return &handClock{wallClock: wallClock{stopped: true, now: noon}}
}

func (c *handClock) After(d time.Duration) <-chan time.Time {
	if c.mute {
		return nil
	}
	c.waits = append(c.waits, d)
	if !c.frozen {
		c.step(d)
	}
	ready := make(chan time.Time, 1)
	ready <- c.Now()
	return ready
}

// clockFunc is a clock that a test writes out.
type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }

// narrow holds 4 IDs per millisecond on each of 4 nodes.
func narrow() snowflake.Layout {
	return snowflake.Layout{
		Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Tick: time.Millisecond,
		TimeBits: 41, NodeBits: 2, SequenceBits: 2,
	}
}

// wide holds 4,194,304 IDs per millisecond, so that callers contend for the word and not for the
// clock.
func wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 0, 22
	return l
}

// layouts are those of the scripts.
var layouts = map[string]snowflake.Layout{
	"narrow":   narrow(),
	"default":  snowflake.Default(),
	"at-epoch": {Epoch: noon, Tick: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 12},
	"short":    {Epoch: noon, Tick: time.Millisecond, TimeBits: 2, NodeBits: 1, SequenceBits: 1},
	"deep":     {Epoch: noon, Tick: time.Millisecond, TimeBits: 2, SequenceBits: 20},
	"long":     {Epoch: noon.AddDate(-50, 0, 0), Tick: time.Millisecond, TimeBits: 45, SequenceBits: 10},
}

func newGenerator(t testing.TB, opts ...generator.Option) *generator.Generator {
	t.Helper()
	g, err := generator.New(append([]generator.Option{generator.WithNode(0)}, opts...)...)
	require.NoError(t, err)
	return g
}

func mustNext(t testing.TB, g *generator.Generator) snowflake.ID {
	t.Helper()
	id, err := g.Next()
	require.NoError(t, err)
	return id
}

// decode returns id's time, as a distance from noon, and its sequence number.
func decode(t testing.TB, g *generator.Generator, id snowflake.ID) (time.Duration, int64) {
	t.Helper()
	d, err := g.Layout().Decode(id)
	require.NoError(t, err)
	return d.Time.Sub(noon), d.Sequence
}

// granted returns a generator of a layout whose window the test fills by hand.
func granted(t testing.TB, l snowflake.Layout, c monoclock.Interface, r window.Range, opts ...generator.Option) (*generator.Generator, *window.Ticks) {
	t.Helper()
	w := window.NewTicks(uint8(l.SequenceBits), 1<<l.TimeBits)
	w.Grant(r, r.To)
	return newGenerator(t, append([]generator.Option{generator.WithWindow(w), generator.WithLayout(l), generator.WithClock(c)}, opts...)...), w
}

// grant is a range of node, from one tick of the layout to another, counted from noon.
func grant(l snowflake.Layout, node, from, to int64) window.Range {
	base := int64(noon.Sub(l.Epoch) / l.Tick)
	return window.Range{Node: node, From: uint64(base + from), To: uint64(base + to)}
}

// row is a script for one generator.
//
// Its setup names a layout (narrow), the clock (the hand clock; machine: the machine's), the first
// grant of node 1, as in grant:0-100 (none: node 0, without end), and the strategy, in the form of
// strategies.Parse, or one of the test's own.
//
// Its statements are separated by semicolons:
//
//	next 0:0..2 1:0          calls and their outcomes: the milliseconds from noon and the sequence
//	                         number, @ and the node number if it is not the first; or the error
//	stream 0:0; batch 9 9 0:0 2:0; run 2 2 0:0 0:1
//	                         the other calls; the last two tell how many, the first and the last
//	after 5:1@2 5:2          a call of NextAfter: the seen ID, or its number, and the outcome
//	go next; back 0:0        begins a call, and later tells the outcomes of the calls that were
//	                         begun; - is for one that has not returned
//	+1ms; -1h; at 1970-01-01; freeze; mute
//	                         what the clock does
//	grant 2 5 9; take 5; revoke; seal; fail away; asked; wants 5
//	                         what happens to the window; asked: the keeper is asked for a grant;
//	                         wants: up to this millisecond, or 0
//	deadline 5ms; cancel; free
//	                         the context of the calls to come
//	sleep 1ms; took 1ms; within 2ms
//	                         the machine's time, since the last of the latter two
//	waits 1ms; decided 3; stats waits=1; ready 1ms ok; gate true; close
//
// An error has its numbers, which may be left out: behind:lead/limit, with +waited, and seen if it names
// that, and ungranted:limit:past, with +waited, and the reason. Words can be repeated: 3*canceled.
type row struct{ setup, script string }

// scripts runs rows, each with both orders of the fields.
func scripts(t *testing.T, rows map[string]row) {
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
			t.Run(name+"/"+order.String(), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := newRig(t, rows[name].setup, order)
					for statement := range strings.SplitSeq(rows[name].script, ";") {
						r.run(strings.Fields(statement))
						if t.Failed() {
							t.Fatalf("in %q of\n%s: %s", statement, rows[name].setup, rows[name].script)
						}
					}
					r.cancel()
					require.NoError(t, r.g.Close())
				})
			})
		}
	}
}

// rig is a generator under a script.
type rig struct {
	t       *testing.T
	g       *generator.Generator
	w       *window.Ticks // or nil
	s       *generator.Stream
	layout  snowflake.Layout
	hand    *handClock
	clock   *wallClock
	ctx     context.Context
	cancel  context.CancelFunc
	node    int64
	last    snowflake.ID // of the calls that are not begun by go
	calls   []chan string
	decided int // by a strategy of the test's own
	began   time.Time
}

var errCause, errAway = errors.New("no more time"), errors.New("store is away")

// reasons are those for which the window has no grant.
var reasons = map[string]error{
	"away": errAway, "lost": lease.ErrLost, "moved": lease.ErrMoved, "went-back": stores.ErrWentBack,
	"refused": fmt.Errorf("%w: WRONGTYPE", stores.Refused.New("use another namespace")),
}

func newRig(t *testing.T, setup string, order snowflake.Order) *rig {
	r := &rig{t: t, hand: newHandClock(), last: -1, began: time.Now(), layout: layouts["narrow"]}
	r.clock = &r.hand.wallClock
	var clock monoclock.Interface = r.hand
	opts := []generator.Option{}
	var first []string
	for word := range strings.FieldsSeq(setup) {
		layout, known := layouts[word]
		own, strategy := r.own(word)
		ticks, grants := strings.CutPrefix(word, "grant:")
		switch {
		case known:
			r.layout = layout
		case word == "machine":
			r.clock = &wallClock{}
			clock = r.clock
		case grants:
			first = strings.Split(ticks, "-")
		case own:
			opts = append(opts, generator.WithStrategy(strategy))
		default:
			parsed, err := strategies.Parse(word)
			require.NoError(t, err)
			opts = append(opts, generator.WithStrategy(parsed))
		}
	}
	r.layout.Order = order
	if first == nil {
		r.g = newGenerator(t, append(opts, generator.WithLayout(r.layout), generator.WithClock(clock))...)
	} else {
		r.g, r.w = granted(t, r.layout, clock, grant(r.layout, 1, r.number(first[0]), r.number(first[1])), opts...)
	}
	r.s, r.node = r.g.Stream(), r.g.Node()
	r.free()
	return r
}

// own returns the strategy from outside of this name.
func (r *rig) own(name string) (bool, strategies.Strategy) {
	d, known := map[string]strategies.Decision{
		"own-borrow": {Action: strategies.ActionBorrow}, "own-cancel": {Action: strategies.ActionBorrow},
		"own-wait": {Action: strategies.ActionWait}, "own-steps": {Action: strategies.ActionWait, Wait: 400 * time.Millisecond},
		"own-hair":    {Action: strategies.ActionWait, Wait: 1500*time.Microsecond + 1},
		"own-unknown": {Action: 99, Limit: time.Minute},
	}[name]
	return known, strategies.Func(func(s strategies.Situation) strategies.Decision {
		assert.Positive(r.t, s.Lead)
		if r.decided++; r.decided == 3 && name == "own-cancel" {
			r.cancel()
		}
		return d
	})
}

// free gives the calls a context that does not end.
func (r *rig) free() {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	r.ctx, r.cancel = ctx, func() { cancel(errCause) }
}

func (r *rig) duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	require.NoError(r.t, err)
	return d
}

func (r *rig) number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(r.t, err)
	return n
}

func (r *rig) run(words []string) {
	verb, args := words[0], words[1:]
	since := func() time.Duration {
		d := time.Since(r.began)
		r.began = time.Now()
		return d
	}
	switch verb {
	case "next", "stream":
		for _, want := range expand(args) {
			r.expect(want, r.call(verb, nil))
		}
	case "batch", "run":
		r.expect(strings.Join(args[1:], " "), r.call(verb, args[:1]))
	case "after", "stream-after":
		r.expect(args[1], r.call(verb, args[:1]))
	case "wants":
		want := r.number(args[0])
		if want > 0 {
			want = int64(grant(r.layout, 1, want, 0).From)
		}
		assert.EqualValues(r.t, want, r.w.Wanted())
	case "go":
		result, ctx := make(chan string, 1), r.ctx
		r.calls = append(r.calls, result)
		go func() {
			text, _ := r.outcome(ctx, args[0], args[1:])
			result <- text
		}()
		synctest.Wait()
	case "back":
		r.back(expand(args))
	case "at":
		at, err := time.Parse(time.DateOnly, args[0])
		require.NoError(r.t, err)
		r.clock.stop(at)
	case "freeze":
		r.hand.frozen = true
		r.clock.stop(r.clock.Now())
	case "mute":
		r.hand.mute = true
	case "grant":
		g := grant(r.layout, r.number(args[0]), r.number(args[1]), r.number(args[2]))
		r.w.Grant(g, g.To)
	case "take":
		_, _, ok := r.w.Span().Take(grant(r.layout, 1, r.number(args[0]), 0).From, 0, 0, 1)
		require.True(r.t, ok)
	case "revoke":
		r.w.Revoke()
	case "seal":
		r.w.Seal()
	case "fail":
		r.w.Fail(reasons[args[0]])
	case "asked":
		require.NotEmpty(r.t, r.w.More())
		<-r.w.More()
	case "deadline":
		ctx, cancel := context.WithTimeoutCause(r.t.Context(), r.duration(args[0]), errCause)
		r.ctx, r.cancel = ctx, cancel
	case "cancel":
		r.cancel()
		synctest.Wait()
	case "free":
		r.free()
	case "sleep":
		time.Sleep(r.duration(args[0]))
		synctest.Wait()
	case "took":
		assert.Equal(r.t, r.duration(args[0]), since())
	case "within":
		assert.LessOrEqual(r.t, since(), r.duration(args[0]))
	case "waits":
		var waits []time.Duration
		for _, word := range expand(args) {
			waits = append(waits, r.duration(word))
		}
		assert.Equal(r.t, waits, r.hand.waits)
		r.hand.waits = nil
	case "decided":
		assert.LessOrEqual(r.t, r.decided, int(r.number(args[0])))
	case "stats":
		r.stats(args)
	case "ready", "err":
		before, err := r.g.Stats(), r.g.Err()
		if verb == "ready" {
			err = r.g.Ready(r.duration(args[0]))
		}
		got := r.text(err)
		if got == "" {
			got = "ok"
		}
		r.expect(args[len(args)-1], got)
		assert.Equal(r.t, before, r.g.Stats(), "nothing is counted")
		if r.w != nil {
			assert.Empty(r.t, r.w.More(), "the keeper is not asked")
		}
	case "gate":
		assert.Equal(r.t, args[0], strconv.FormatBool(r.g.GateOpen()))
	case "close":
		require.NoError(r.t, r.g.Close())
		synctest.Wait()
	default:
		r.clock.step(r.duration(verb))
	}
}

// back compares the outcomes of the calls that were begun, and forgets those that have returned.
func (r *rig) back(want []string) {
	synctest.Wait()
	require.Len(r.t, r.calls, len(want))
	r.calls = slices.DeleteFunc(r.calls, func(result chan string) bool {
		got := "-"
		select {
		case got = <-result:
		default:
		}
		r.expect(want[0], strings.ReplaceAll(got, " ", "_"))
		want = want[1:]
		return got != "-"
	})
}

func (r *rig) stats(want []string) {
	s := r.g.Stats()
	for _, word := range want {
		name, value, _ := strings.Cut(word, "=")
		got := map[string]any{
			"waits": s.Waits, "waited": s.Waited, "borrowed": s.BorrowedTicks, "rejections": s.Rejections,
			"lead": s.Lead, "maxlead": s.MaxLead, "granted": s.Remaining,
		}[name]
		assert.Equal(r.t, value, fmt.Sprint(got), name)
	}
}

// expect compares an outcome with a word, which may leave out an error's numbers, or be "any".
func (r *rig) expect(want, got string) {
	if name, _, numbers := strings.Cut(got, ":"); numbers && want == name || want == "any" {
		return
	}
	assert.Equal(r.t, want, got)
}

// call makes a call whose IDs must be above all before, unless it is of the stream.
func (r *rig) call(verb string, args []string) string {
	text, last := r.outcome(r.ctx, verb, args)
	if last >= 0 && verb != "stream" {
		assert.Greater(r.t, last, r.last)
	}
	r.last = max(r.last, last)
	return text
}

// outcome makes a call, and returns what it returned as text, and its last ID, or -1.
func (r *rig) outcome(ctx context.Context, verb string, args []string) (string, snowflake.ID) {
	var n int
	var first, last snowflake.ID
	var err error
	switch verb {
	case "next":
		first, err = r.g.NextContext(ctx)
	case "stream":
		first, err = r.s.NextContext(ctx)
	case "after", "stream-after":
		seen, after := r.seen(args[0]), r.g.NextAfter
		if verb == "stream-after" {
			after = r.s.NextAfter
		}
		if first, err = after(ctx, seen); err == nil {
			assert.Greater(r.t, first, seen)
		}
		args = nil
	case "batch":
		ids := make([]snowflake.ID, r.number(args[0]))
		n, err = r.g.NextNContext(ctx, ids)
		assert.IsIncreasing(r.t, append([]snowflake.ID{-2, -1}, ids[:n]...))
		assert.Zero(r.t, append(ids, 0)[n])
		if n > 0 {
			first, last = ids[0], ids[n-1]
		}
	case "run":
		var runs []snowflake.Run
		runs, err = r.g.NextRuns(ctx, r.number(args[0]), nil)
		for i, run := range runs {
			n, first, last = n+int(run.Count), runs[0].First, run.Last()
			assert.True(r.t, i == 0 || run.First > runs[i-1].Last())
		}
	}
	if len(args) == 0 {
		if err != nil {
			assert.Zero(r.t, first)
			return r.text(err), -1
		}
		return r.id(first), first
	}
	words := []string{strconv.Itoa(n)}
	if n > 0 {
		words = append(words, r.id(first), r.id(last))
	} else {
		last = -1
	}
	return strings.TrimSpace(strings.Join(append(words, r.text(err)), " ")), last
}

func (r *rig) id(id snowflake.ID) string {
	d, err := r.layout.Decode(id)
	require.NoError(r.t, err)
	text := fmt.Sprintf("%d:%d", d.Time.Sub(noon).Milliseconds(), d.Sequence)
	if d.Node != r.node {
		text += fmt.Sprintf("@%d", d.Node)
	}
	return text
}

// seen returns the ID of a word as id writes it, or the number that it is.
func (r *rig) seen(word string) snowflake.ID {
	at, node, other := strings.Cut(word, "@")
	ms, sequence, ok := strings.Cut(at, ":")
	if !ok {
		return snowflake.ID(r.number(word))
	}
	number := r.node
	if other {
		number = r.number(node)
	}
	id, err := r.layout.Compose(noon.Add(r.duration(ms+"ms")), number, r.number(sequence))
	require.NoError(r.t, err)
	return id
}

var waitedText = regexp.MustCompile(`after (\S+) of waiting`)

// text returns an error in the form of a row, and "" for none.
func (r *rig) text(err error) string {
	var text string
	var waited time.Duration
	var seen bool
	var lead *generator.LeadError
	var end *generator.GrantError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &lead):
		text, waited = fmt.Sprintf("%s:%s/%s", lead.Cause, lead.Lead, lead.Limit), lead.Waited
		assert.Equal(r.t, lead.Cause == strategies.Behind, errors.Is(err, generator.ErrBehind))
		assert.Equal(r.t, lead.Cause == strategies.Exhausted, errors.Is(err, generator.ErrExhausted))
		assert.ErrorIs(r.t, err, stores.Passing)
		seen = lead.Seen != 0
	case errors.As(err, &end):
		text, waited = fmt.Sprintf("ungranted:%s:%s", end.Limit.Sub(noon), end.Past), end.Waited
		assert.ErrorIs(r.t, err, generator.ErrNotGranted)
		assert.Equal(r.t, end.Err == nil, errors.Is(err, stores.Passing))
	case errors.Is(err, generator.ErrClosed):
		text = "closed"
	case errors.Is(err, lease.ErrEndOfTime):
		text = "end"
	case errors.Is(err, snowflake.ErrRange):
		text = "range"
	}
	if waited > 0 {
		text += "+" + waited.String()
	}
	if seen {
		text += ",seen"
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if errors.Is(err, reasons[name]) {
			text += "," + name
		}
	}
	if ended := errors.Is(err, context.Canceled); ended || errors.Is(err, context.DeadlineExceeded) {
		assert.ErrorIs(r.t, err, errCause)
		if text != "" {
			text += ","
		}
		text += map[bool]string{true: "canceled", false: "deadline"}[ended]
		if match := waitedText.FindStringSubmatch(err.Error()); match != nil {
			text += ":" + match[1]
		}
	}
	return text
}

var several = regexp.MustCompile(`^(-?\d+):(\d+)\.\.(\d+)$`)

// expand writes out 3*word, and 0:1..3.
func expand(words []string) (all []string) {
	for _, word := range words {
		if count, again, ok := strings.Cut(word, "*"); ok {
			n, _ := strconv.Atoi(count)
			all = append(all, slices.Repeat([]string{again}, n)...)
		} else if m := several.FindStringSubmatch(word); m != nil {
			from, _ := strconv.Atoi(m[2])
			to, _ := strconv.Atoi(m[3])
			for i := from; i <= to; i++ {
				all = append(all, fmt.Sprintf("%s:%d", m[1], i))
			}
		} else {
			all = append(all, word)
		}
	}
	return all
}

func second[T any](_ T, err error) error { return err }
