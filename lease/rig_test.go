package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

const (
	period = lease.DefaultWindow
	third  = period / 3
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// rig has the cells, the clock and the log of the keepers of a test, which polls them. A script, see
// [rig.run], knows each keeper by a name.
type rig struct {
	*testing.T
	clock *clocktest.Virtual
	cells *storetest.Memory
	log   *record
	calls map[storetest.OpKind]int // of all clients from client

	members map[string]*member
	seen    map[snowflake.ID]bool // all IDs of the scripts
	stores  map[string]*storetest.Memory
	saved   stores.Cell
	last    string // the key of the last call
	backups map[string]func()
	always  []lease.Option          // of all that take some
	fleet   lease.Fleet             // that the last end returned
	cancel  context.CancelCauseFunc // of the call that waits
}

// member is a keeper of a script.
type member struct {
	*lease.Keeper
	via *client
	gen *generator.Generator // or nil
}

func newRig(t *testing.T) *rig {
	cells := storetest.NewMemory()
	return &rig{T: t, clock: clocktest.NewVirtual(noon), cells: cells, log: &record{}, calls: map[storetest.OpKind]int{},
		members: map[string]*member{}, seen: map[snowflake.ID]bool{}, stores: map[string]*storetest.Memory{}, backups: map[string]func(){}}
}

// record is the text of a log. A keeper's goroutine may write it while a test reads it.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *record) count(text string) int { return strings.Count(r.String(), text) }

func (r *record) option() lease.Option {
	return lease.WithLogger(slog.New(slog.NewTextHandler(r, nil)))
}

// client is a process's way to the cells. It counts its calls. The first of its rules that an operation
// meets says what becomes of it.
type client struct {
	*storetest.Memory
	rules []*rule
	err   error        // of each call, or nil
	old   *stores.Cell // that the next read of its key shows, or nil
	stays bool         // each read shows it
}

// rule is what becomes of n operations after skip others, or of all if n is below 0. An operation is a text
// such as "read:layout" and "swap:node/0000007", which begins with of.
type rule struct {
	of      string
	skip, n int
	fate    storetest.Fault
	act     func()
}

func (r *rule) meets(op storetest.Op) bool {
	if r.n == 0 || !strings.HasPrefix(op.Kind.String()+":"+op.Key, r.of) {
		return false
	}
	if r.skip > 0 {
		r.skip--
		return false
	}
	r.n--
	return true
}

// away has the store be away until there are other rules.
func away() []*rule { return []*rule{{n: -1, fate: storetest.Unavailable}} }

// client returns a client of the cells.
func (r *rig) client() *client {
	c := &client{Memory: r.cells.Client()}
	c.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		r.last = op.Key
		r.calls[op.Kind]++
		for _, rule := range c.rules {
			if rule.meets(op) {
				if rule.act != nil {
					rule.act()
				}
				return rule.fate
			}
		}
		return storetest.None
	}
	return c
}

// locker is a client of a store with locks.
type locker struct{ *client }

func (l locker) Traits() stores.Traits { return l.Locking().Traits() }

func (c *client) Read(ctx context.Context, key string) (stores.Cell, error) {
	found, err := c.Memory.Read(ctx, key)
	if err = errors.Join(err, c.err); err != nil || c.old == nil || c.old.Key != key {
		return found, err
	}
	found = *c.old
	if !c.stays {
		c.old = nil
	}
	return found, nil
}

func (c *client) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if c.err != nil {
		return 0, c.err
	}
	return c.Memory.Swap(ctx, key, version, value)
}

func (r *rig) trips() (n int) {
	for _, calls := range r.calls {
		n += calls
	}
	return n
}

// polled has a claim make a keeper without a goroutine, which works only within Poll.
func polled(ctx context.Context) context.Context { return new(seam.Poller).In(ctx) }

func (r *rig) options(more ...lease.Option) []lease.Option {
	return slices.Concat([]lease.Option{lease.WithClock(r.clock), r.log.option()}, r.always, more)
}

// try claims on a store, or, if that is nil, on a client of the cells.
func (r *rig) try(store stores.Store, more ...lease.Option) (*lease.Keeper, error) {
	if store == nil {
		store = r.client()
	}
	return lease.Claim(polled(r.Context()), store, r.options(more...)...)
}

// claim is try without an error.
func (r *rig) claim(store stores.Store, more ...lease.Option) *lease.Keeper {
	r.Helper()
	k, err := r.try(store, more...)
	require.NoError(r, err)
	return k
}

// generator is one that issues with a keeper, and refuses what lies ahead of the clock.
func (r *rig) generator(k *lease.Keeper) *generator.Generator {
	g, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(r, err)
	return g
}

// keep lets time pass for a keeper as its goroutine does.
func (r *rig) keep(k *lease.Keeper, d time.Duration, each func()) {
	r.Helper()
	for end := r.clock.Elapsed() + d; r.clock.Elapsed() < end; {
		next := first(k.Poll(r.Context()))
		require.Positive(r, next, "it would run hot")
		each()
		r.clock.Advance(min(next, end-r.clock.Elapsed()))
	}
}

func (r *rig) holding(node int64) lease.Holding {
	return must(lease.Inspect(r.Context(), r.cells, node))
}

// write writes the cell of a key without a keeper.
func (r *rig) write(key string, value []byte) {
	must(r.cells.Swap(r.Context(), key, r.cells.Peek(key).Version, value))
}

// refuses checks that an error is about an option or argument.
func (r *rig) refuses(option string, err error) {
	r.Helper()
	var refused *stores.OptionError
	require.ErrorAs(r, err, &refused)
	require.Equal(r, option, refused.Option)
	require.ErrorIs(r, err, stores.Permanent)
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func first[T any](x T, _ error) T { return x }

func second[T any](_ T, err error) error { return err }

// small is a layout of a few node numbers.
func small(nodeBits int) lease.Option { return lease.WithLayout(smallLayout(nodeBits)) }

func smallLayout(nodeBits int) snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits, l.Name, l.Parts = nodeBits, min(12, 22-nodeBits), "", nil
	return l
}

// bubble runs a test with real goroutines in the virtual time of package synctest, which begins in 2000:
// before the epoch of layouts.
func bubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		test(t)
	})
}

// scripts runs each script in a rig of its own.
func scripts(t *testing.T, rows map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Run(name, func(t *testing.T) { newRig(t).run(rows[name]) })
	}
}

// line is a statement of a script: a verb, its arguments, a block of other statements, and what it gives.
type line struct {
	*rig
	*member // that the first argument names, or nil
	verb    string
	args    []string
	block   []line
	want    []string
}

var token = regexp.MustCompile(`'[^']*'|[{};\n]|[^\s{};']+`)

// parse parses statements up to the end of their block.
func (r *rig) parse(tokens []string) (list []line, rest []string) {
	var words, want []string
	into, block := &words, []line(nil)
	for len(tokens) > 0 {
		t := tokens[0]
		tokens = tokens[1:]
		switch t {
		case "=":
			into = &want
		case "{":
			block, tokens = r.parse(tokens)
		case ";", "\n", "}":
			if len(words) > 0 {
				list = append(list, line{rig: r, verb: words[0], args: words[1:], block: block, want: want})
			}
			if words, want, into, block = nil, nil, &words, nil; t == "}" {
				return list, tokens
			}
		default:
			*into = append(*into, strings.Trim(t, "'"))
		}
	}
	return list, nil
}

// run runs a script: statements in lines, or separated by semicolons. After a = are sentinels that the
// error of a statement wraps, or after a ! does not wrap, and texts in it; else there is no error.
func (r *rig) run(script string) {
	r.Helper()
	list, _ := r.parse(token.FindAllString(script+"\n", -1))
	r.do(list)
}

func (r *rig) do(list []line) {
	r.Helper()
	for _, l := range list {
		if d, err := time.ParseDuration(l.verb); err == nil {
			r.clock.Advance(d)
			continue
		}
		if len(l.args) > 0 {
			l.member = r.members[l.args[0]]
		}
		require.NotNil(r, verbs[l.verb], l.verb)
		err := verbs[l.verb](l)
		about := fmt.Sprintf("in %q %q", l.verb, l.args)
		if l.want == nil {
			require.NoError(r, err, about)
		}
		for _, want := range l.want {
			name, not := strings.CutPrefix(want, "!")
			switch sentinel := sentinels[name]; {
			case not:
				require.NotErrorIs(r, err, sentinel, about)
			case name == "any":
			case sentinel != nil:
				require.ErrorIs(r, err, sentinel, about)
			default:
				require.ErrorContains(r, err, want, about)
			}
		}
	}
}

var errCause = errors.New("the deploy was stopped")

var sentinels = map[string]error{
	"canceled": context.Canceled, "cause": errCause, "closed": lease.ErrClosed, "conflict": stores.ErrConflict, "damaged": stores.ErrDamaged, "end": lease.ErrEndOfTime,
	"held": lease.ErrHeld, "locked": stores.ErrLocked, "lost": lease.ErrLost, "moved": lease.ErrMoved,
	"never-claimed": lease.ErrNeverClaimed, "not-released": lease.ErrNotReleased, "refused": stores.Permanent, "skew": lease.ErrSkew,
	"store": lease.ErrStore, "ungranted": generator.ErrNotGranted, "went-back": stores.ErrWentBack,
}

// duration is that of a word.
func duration(word string) time.Duration { return must(time.ParseDuration(word)) }

// keyOf is the key of a word: a node number, or the key itself.
func keyOf(word string) string {
	if node, err := strconv.ParseInt(word, 10, 64); err == nil {
		return cell.NodeKey(node)
	}
	return word
}

// number is that of a word, after a prefix such as "pin:".
func number(word string) int64 {
	return must(strconv.ParseInt(word[strings.Index(word, ":")+1:], 10, 64))
}

// flags reads the options of a claim from words, such as pin:5, bits:3, window:6s and owner:me.
func flags(words []string) (options []lease.Option) {
	for _, word := range words {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "pin":
			options = append(options, lease.WithNode(number(value)))
		case "bits":
			options = append(options, small(int(number(value))))
		case "window":
			options = append(options, lease.WithWindow(duration(value)))
		case "owner":
			options = append(options, lease.WithOwner(value))
		case "timeout":
			options = append(options, lease.WithTimeout(duration(value)))
		case "strict":
			options = append(options, lease.WithStrictFleetCheck())
		}
	}
	return options
}

// verbs are those of the statements. The first argument of most of them is the name of a keeper.
var verbs map[string]func(l line) error

func init() { // they run each other
	verbs = map[string]func(l line) error{
		"all": func(l line) error { l.always = flags(l.args); return nil }, // the options of all statements after it

		// What a keeper does. A claim locks if it says so, and waits with a deadline.
		"client":   func(l line) error { l.members[l.args[0]] = &member{via: l.client()}; return nil },
		"claim":    line.claims,
		"clone":    line.clones, // of the first keeper's memory, the second one
		"next":     line.next,   // an ID that no other call has returned
		"again":    line.next,   // an ID that one has
		"poll":     func(l line) error { _, _ = l.Poll(l.Context()); return nil },
		"keep":     func(l line) error { l.keep(l.Keeper, duration(l.args[1]), func() {}); return nil },
		"close":    func(l line) error { return l.Keeper.Close() },
		"restored": func(l line) error { return l.within(l.Restored) },
		"cancel":   func(l line) error { l.cancel(errCause); return nil }, // that of the call that waits
		"crash":    func(l line) error { l.via.Crash(); return nil },
		"apart": func(l line) error { // IDs of times before that, or none
			until := time.Time{}
			if l.args[1] != "none" {
				until = noon.Add(duration(l.args[1]))
			}
			l.IssueApart(until)
			return nil
		},
		"distrust": func(l line) error { l.Distrust(); return nil },

		// What happens to its calls of a kind, so many, after so many others: a fate, or others come before.
		"fate": func(l line) error {
			require.Contains(l, fates, l.args[2])
			return l.rules(fates[l.args[2]], l.args[3:], nil)
		},
		"on":    func(l line) error { return l.rules(storetest.None, l.args[2:], func() { l.do(l.block) }) },
		"fails": func(l line) error { l.via.err = failures[l.args[1]]; return nil },
		"heal": func(l line) error {
			*l.via = client{Memory: l.via.Memory}
			return nil
		},
		// Its next read, or each, shows a cell that was remembered.
		"remember": func(l line) error { l.saved = l.cells.Peek(keyOf(l.args[0])); return nil },
		"shows":    func(l line) error { l.via.old, l.via.stays = &l.saved, len(l.args) > 1; return nil },

		// What happens to the clock, to the store, and to a cell in it, or to that of the present
		// call, which gets a text, or the one that it has.
		"step":     func(l line) error { l.clock.Step(duration(l.args[0])); return nil },
		"deliver":  func(l line) error { l.cells.Deliver(0); return nil },
		"snapshot": func(l line) error { l.backups[l.args[0]] = l.cells.Snapshot(); return nil },
		"back":     func(l line) error { l.backups[l.args[0]](); return nil },
		"in":       line.in, // another store
		"write":    line.writes,

		// What an operator does, through the client that the last argument names, if it names one.
		"release": func(l line) error { return lease.ForceRelease(l.Context(), l.store(), number(l.args[0])) },
		"reserve": line.reserves, // from, to, until
		"end":     line.ends,     // from, to, the name of the other store
		"found":   line.founds,   // from and to, or what the last end returned
		"give":    line.gives,    // from and to, to the past
		"retire":  line.gives,    // from and to, of the past

		// What is to be. Times are counted from noon, and calls since the last such line.
		"err":   func(l line) error { return l.Err() },
		"node":  func(l line) error { require.Equal(l, l.args[1], fmt.Sprint(l.Node())); return nil },
		"holds": func(l line) error { require.Equal(l, l.args[1], fmt.Sprint(l.Held().Node)); return nil },
		"log": func(l line) error {
			require.EqualValues(l, number(l.args[0]), l.log.count(l.args[1]), "%s", l.log)
			return nil
		},
		"calls":   line.tells,
		"stats":   line.stats,
		"granted": line.granted,
		"fleet":   line.fleets,   // what the store has
		"past":    line.pasts,    // the states of its numbers, a letter each
		"later":   line.laters,   // what the last end returned
		"holding": line.holdings, // a number's state, and its limit
		"same":    line.same,     // the cell of a number, before and after a block
	}
}

func (l line) claims() error {
	m := l.member
	if m == nil || m.Keeper != nil {
		m = &member{via: l.client()}
		l.members[l.args[0]] = m
	}
	return l.within(func(ctx context.Context) (err error) {
		m.Keeper, err = lease.Claim(polled(ctx), l.storeOf(m), l.options(flags(l.args)...)...)
		return err
	})
}

// within calls a function that waits if the line says that there is a deadline.
func (l line) within(do func(ctx context.Context) error) error {
	if !slices.Contains(l.args, "deadline") {
		return do(l.Context())
	}
	ctx, end := context.WithTimeout(l.Context(), time.Hour)
	defer end()
	ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(nil)
	l.clock.AutoAdvance(true)
	defer l.clock.AutoAdvance(false)
	return do(ctx)
}

func (l line) clones() error {
	options := append([]lease.Option{lease.WithLayout(l.Layout())}, flags(l.args)...)
	m := &member{via: l.client()}
	m.Keeper = must(l.Clone(m.via, l.options(options...)))
	l.members[l.args[1]] = m
	return nil
}

func (l line) next() error {
	if l.gen == nil {
		l.gen = l.generator(l.Keeper)
	}
	id, err := l.gen.Next()
	require.Equal(l, l.verb == "again", err == nil && l.seen[id], "%d is issued twice", id)
	l.seen[id] = true
	return err
}

// rules adds a rule, for one call or, as in 3+2, for three after two others.
func (l line) rules(fate storetest.Fault, count []string, act func()) error {
	n, skip := 1, 0
	if len(count) > 0 {
		_, _ = fmt.Sscanf(count[0], "%d+%d", &n, &skip)
	}
	c := l.via
	c.rules = append(c.rules, &rule{of: strings.TrimPrefix(l.args[1], "any"), fate: fate, n: n, skip: skip, act: act})
	return nil
}

var fates = map[string]storetest.Fault{"away": storetest.Unavailable, "lost": storetest.ReplyLost, "delayed": storetest.Delayed}

var failures = map[string]error{
	"refused": stores.Permanent.New("use another namespace"), "passing": stores.Transient.New("connection refused"),
	"overloaded": stores.ErrOverloaded, "damaged": &stores.DamagedError{Key: "k", Problem: "cut off"},
}

func (l line) in() error {
	if l.stores[l.args[0]] == nil {
		l.stores[l.args[0]] = storetest.NewMemory()
	}
	l.cells = l.stores[l.args[0]]
	return nil
}

func (l line) writes() error {
	key := keyOf(l.args[0])
	if l.args[0] == "it" {
		key = l.last
	}
	value := l.cells.Peek(key).Value
	if len(l.args) > 1 {
		value = []byte(l.args[1])
	}
	l.write(key, value)
	return nil
}

// storeOf is a member's, with locks if the line says so.
func (l line) storeOf(m *member) stores.Store {
	if slices.Contains(l.args, "locks") {
		return locker{m.via}
	}
	return m.via
}

func (l line) store() stores.Store {
	m := &member{via: l.client()}
	if n := len(l.args); n > 0 && l.members[l.args[n-1]] != nil {
		m = l.members[l.args[n-1]]
	}
	return l.storeOf(m)
}

func (l line) reserves() error {
	until := noon.Add(duration(l.args[2]))
	return lease.Reserve(l.Context(), l.store(), number(l.args[0]), number(l.args[1]), until, l.options(flags(l.args)...)...)
}

func (l line) ends() error {
	f, err := lease.EndFleet(l.Context(), l.store(), number(l.args[0]), number(l.args[1]), l.args[2], l.options(flags(l.args)...)...)
	if err == nil {
		l.fleet = f
	}
	return err
}

func (l line) founds() error {
	f := l.fleet
	if len(l.args) > 1 {
		f = lease.Fleet{From: number(l.args[0]), To: number(l.args[1])}
	}
	for _, word := range l.args {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "floor":
			f.Floor = noon.Add(duration(value))
		case "later":
			f.Later = []lease.LaterNode{{Node: f.From, Until: noon.Add(duration(value))}}
		}
	}
	return lease.SetFleet(l.Context(), l.store(), f, l.options(flags(l.args)...)...)
}

// gives gives numbers to the past, or retires them, once a look has written nothing. What the look refuses is refused.
func (l line) gives() (err error) {
	p := lease.Past{From: number(l.args[0]), To: number(l.args[1]), Retired: l.verb == "retire", Unused: slices.Contains(l.args, "unused")}
	for _, word := range l.args[2:] {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "lane":
			p.Lane = number(value)
		case "bucket":
			p.Bucket = duration(value)
		}
	}
	store, options, before := l.store(), l.options(), l.calls[storetest.OpSwap]
	looked := lease.CheckPast(l.Context(), store, p, options...)
	require.Equal(l, before, l.calls[storetest.OpSwap])
	if p.Retired {
		err = lease.RetirePast(l.Context(), store, p.From, p.To, options...)
	} else {
		err = lease.GivePast(l.Context(), store, p, options...)
	}
	if looked != nil {
		require.Equal(l, looked, err)
		require.Equal(l, before, l.calls[storetest.OpSwap])
	}
	return err
}

func (l line) pasts() error {
	states := []byte(strings.Repeat(".", len(l.args[0]))) // never written
	for _, h := range must(lease.List(l.Context(), l.cells)) {
		states[h.Node] = map[lease.State]byte{lease.OfPast: 'p', lease.Retired: 'r', lease.Released: 'x', lease.Reserved: 'R'}[h.State]
	}
	require.Equal(l, l.args[0], string(states))
	return nil
}

// about is a fleet in words.
func about(f lease.Fleet) (words []string) {
	words = []string{fmt.Sprint(f.From), fmt.Sprint(f.To)}
	if !f.Floor.IsZero() {
		words = append(words, "floor:"+f.Floor.Sub(noon).String())
	}
	if f.Ended {
		words = append(words, "ended")
	}
	for _, g := range f.Left {
		words = append(words, fmt.Sprintf("%d-%d:%s", g.From, g.To, g.Store))
	}
	for _, b := range f.Later {
		words = append(words, fmt.Sprintf("%d:%s", b.Node, b.Until.Sub(noon)))
	}
	return words
}

func (l line) fleets() error {
	f, err := lease.ReadFleet(l.Context(), l.store())
	if err == nil {
		require.Equal(l, l.args, about(f))
	}
	return err
}

func (l line) laters() error { require.Equal(l, l.args, about(l.fleet)); return nil }

func (l line) stats() error {
	text := " " + strings.Trim(fmt.Sprintf("%+v", l.Stats()), "{}") + " "
	for _, word := range l.args[1:] {
		require.Contains(l, text, " "+word+" ")
	}
	return nil
}

func (l line) tells() error {
	if len(l.args) > 0 {
		require.EqualValues(l, number(l.args[0]), l.trips())
	}
	clear(l.calls)
	return nil
}

func (l line) granted() error {
	from, to := l.Granted()
	require.Equal(l, l.args[1:], []string{from.Sub(noon).String(), to.Sub(noon).String()})
	return nil
}

func (l line) holdings() error {
	h := l.holding(number(l.args[0]))
	require.Equal(l, l.args[1:], []string{h.State.String(), h.Limit.Sub(noon).String()}[:len(l.args)-1])
	return nil
}

func (l line) same() error {
	was := l.cells.Peek(cell.NodeKey(number(l.args[0])))
	l.do(l.block)
	require.Equal(l, was, l.cells.Peek(cell.NodeKey(number(l.args[0]))))
	return nil
}
