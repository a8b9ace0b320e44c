package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// Fleet says what a store is for: the processes that use it, and no others, issue IDs with these node
// numbers. Stores with one layout whose numbers differ need nothing in common, and their IDs never meet: one
// for each region or data centre.
type Fleet struct {
	Layout snowflake.Layout `json:"layout"` // of the IDs
	From   int64            `json:"from"`   // the first node number; once Ended, of those that left last
	To     int64            `json:"to"`     // the last one
	Floor  time.Time        `json:"floor,omitzero"`
	Ended  bool             `json:"ended"` // all numbers have left
	// Left are the numbers that were moved to other stores by [EndFleet], the latest last.
	Left []MovedNodes `json:"left,omitempty"`
	// Later are the numbers that begin later than Floor: no claim takes one before its Until. [EndFleet]
	// returns them, [SetFleet] reserves them, and [ReadFleet] leaves them to [List].
	Later []LaterNode `json:"later,omitempty"`
	// Past are the numbers that were given to the past. [SetFleet] gives them, as [GivePast] does, once the fleet
	// exists. When numbers leave by [EndFleet], those of the past stay behind: the other store has them in Later, to
	// the end of time, and the IDs of old rows still come from this one.
	Past []Past `json:"past,omitempty"`
}

// MovedNodes are node numbers that were moved to another store.
type MovedNodes struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`    // the last
	Store string `json:"store"` // the name of the store that has them, or empty if it was forgotten
}

// LaterNode is a node number that no process claims before a time.
type LaterNode struct {
	Node  int64     `json:"node"`
	Until time.Time `json:"until"`
}

// ReadFleet returns what a store is for. It writes nothing. The error wraps [ErrNeverClaimed] if the store has
// no fleet yet, [stores.ErrDamaged] or [ErrStore].
func ReadFleet(ctx context.Context, store stores.Store) (Fleet, error) {
	if err := checkStore("ReadFleet", store); err != nil {
		return Fleet{}, err
	}
	_, f, err := knownFleet(ctx, &drive.Calls{Store: store})
	if err != nil {
		return Fleet{}, err
	}
	layout, err := cell.ParseLayout(f.Layout)
	t := timeline{layout: layout}
	fleet := Fleet{Layout: layout.Clone(), From: f.Nodes.From, To: f.Nodes.To - 1, Ended: f.Nodes == cell.Nodes{}}
	if f.Floor > 0 {
		fleet.Floor = t.until(f.Floor)
	}
	for _, g := range f.Gone {
		fleet.Left = append(fleet.Left, MovedNodes{From: g.From, To: g.To - 1, Store: g.Store})
		if fleet.Ended {
			fleet.From, fleet.To = g.From, g.To-1
		}
	}
	if err == nil {
		fleet.Past, err = readPast(ctx, &drive.Calls{Store: store})
	}
	return fleet, err
}

// knownFleet reads the fleet's cell, which there must be.
func knownFleet(ctx context.Context, calls *drive.Calls) (version uint64, f cell.Fleet, err error) {
	version, f, err = readFleet(ctx, calls)
	if err == nil && version == 0 {
		err = drive.Wrap(fmt.Sprintf("a node number %v", ErrNeverClaimed), ErrNeverClaimed)
	}
	return version, f, err
}

// SetFleet creates the fleet of a store that has none: it says which node numbers the store has, and from when
// on. A claim on an unused store creates one with all numbers of its layout and no floor, so set the fleet
// before a process uses the store. A store never gets more numbers, and its floor never moves.
//
// Of f it takes Layout (the zero Layout is that of [WithLayout]), From, To, Floor, Later and Past. A store with
// another fleet is refused with an [*stores.OptionError]. If SetFleet fails, call it again: to set the same
// again is success. A call that failed may still take effect later. Only the options WithLayout, [WithClock]
// and [WithTimeout] count. Other errors are those of [Claim].
func SetFleet(ctx context.Context, store stores.Store, f Fleet, options ...Option) error {
	if f.Layout.TimeBits != 0 {
		options = append(slices.Clip(options), WithLayout(f.Layout))
	}
	k, err := administer("SetFleet", store, f.From, f.To, options)
	if err != nil {
		return err
	}
	want := k.newFleet(cell.Nodes{From: f.From, To: f.To + 1})
	if want.Floor = k.limitAt(f.Floor); want.Floor >= k.end() {
		return refuse("SetFleet", "floor %s: want a time before the end of the layout, %s", f.Floor.UTC().Format(time.RFC3339), k.layout.End().Format(time.RFC3339))
	}
	for _, b := range f.Later {
		if !want.Nodes.Has(b.Node) {
			return refuse("SetFleet", "node number %d begins later, and is none of %d to %d", b.Node, f.From, f.To)
		}
		for _, p := range f.Past {
			if p.From <= b.Node && b.Node <= p.To {
				return refuse("SetFleet", "node number %d begins later, so it cannot be given to the past", b.Node)
			}
		}
	}
	return again(func() error {
		version, err := k.readFleet(ctx)
		if err != nil {
			return err
		}
		if has := k.fleet; version != 0 && (has.Nodes != want.Nodes || has.Floor != want.Floor || len(has.Gone) > 0) {
			return refuse("SetFleet", "the store has another fleet, of the node numbers %d to %d from %s on: use another namespace", has.Nodes.From, has.Nodes.To-1, k.time(has.Floor).Format(time.RFC3339))
		}
		if version == 0 {
			k.fleet = want
		}
		for _, p := range f.Past { // nothing is written if these cannot be given
			if err := k.givePast(ctx, p, false); err != nil {
				return err
			}
		}
		for _, b := range f.Later { // (D)
			limit := k.limitAt(b.Until)
			if version == 0 {
				err = k.reserve(ctx, b.Node, limit)
			} else if c, failed := k.readCell(ctx, b.Node); failed != nil || c.Record.Limit < limit {
				err = cmp.Or(failed, refuse("SetFleet", "node number %d may begin before %s in this fleet: use another namespace", b.Node, b.Until.Format(time.RFC3339)))
			}
			if err != nil {
				return err
			}
		}
		if version == 0 {
			_, err = k.swapFleet(ctx, 0, want)
		}
		for i := 0; i < len(f.Past) && err == nil; i++ {
			err = k.givePast(ctx, f.Past[i], true)
		}
		return err
	})
}

// administer returns the cells of a store, for a function that changes those of some node numbers.
func administer(function string, store stores.Store, from, to int64, options []Option) (*keys, error) {
	if err := checkStore(function, store); err != nil {
		return nil, err
	}
	k, err := newKeys(context.Background(), store, options)
	if err == nil {
		err = k.checkRange(function, from, to)
	}
	return &k, err
}

// administerKnown is administer for a store that has a fleet, whose layout it takes.
func administerKnown(ctx context.Context, function string, store stores.Store, from, to int64, options []Option) (*keys, error) {
	if err := checkStore(function, store); err != nil {
		return nil, err
	}
	c := config{timeout: DefaultTimeout} // the layout is the store's, so the options are checked afterwards
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	_, f, err := knownFleet(ctx, &drive.Calls{Store: store, Timeout: max(c.timeout, 0)})
	if err != nil {
		return nil, err
	}
	layout, err := cell.ParseLayout(f.Layout)
	if err != nil {
		return nil, err
	}
	return administer(function, store, from, to, append(slices.Clip(options), WithLayout(layout)))
}

func (k *keys) checkRange(function string, from, to int64) error {
	if from < 0 || to < from || to >= k.nodes() {
		return refuse(function, "node numbers %d to %d: want a range within 0 to %d", from, to, k.nodes()-1)
	}
	return nil
}

func refuse(option, format string, args ...any) error {
	return &stores.OptionError{Option: option, Err: fmt.Errorf(format, args...)}
}

// EndFleet gives node numbers away for good, to another store: this store grants no process a tick of them any
// more, whatever any clock says. Give all numbers that the store has, or some at their lower or upper end: then
// the fleet goes on with the rest. EndFleet returns the fleet that [SetFleet] creates in the other store.
// Create it in one store only, or two fleets issue the same IDs.
//
// Processes that still hold such a number issue the rest of their grants, two thirds of a window or more if the
// store answered before. Then they claim another number; if there is none, or theirs was pinned, their calls
// fail with an error that wraps [ErrMoved]. That error names the other store by newStore, which has at most 300
// bytes and one line: a URL without user, password and options, or a name without the characters @ = ? # %.
//
// EndFleet writes every number once, also those that were never claimed. If it fails, call it again: it
// continues, and returns the same numbers. It returns in Later the numbers with limits more than two windows
// ahead of the clock. If most limits that are no reservations lie that far ahead, EndFleet refuses with an
// error that wraps [ErrSkew], and changes nothing: the clock is wrong, or theirs were.
//
// Only the options [WithClock] and [WithTimeout] count. Other errors are an [*stores.OptionError], or wrap
// [ErrNeverClaimed] if the store has no fleet, ErrMoved if the numbers were moved elsewhere,
// [stores.ErrDamaged] for a cell that cannot be read, [stores.ErrConflict] if other processes write the same
// cells all the time, or [ErrStore].
func EndFleet(ctx context.Context, store stores.Store, from, to int64, newStore string, options ...Option) (Fleet, error) {
	if err := cell.CheckTo(newStore); err != nil {
		return Fleet{}, refuse("EndFleet", "%w", err)
	}
	k, err := administerKnown(ctx, "EndFleet", store, from, to, options)
	if err != nil {
		return Fleet{}, err
	}
	leaving := cell.Nodes{From: from, To: to + 1}
	if err := k.narrowTo(ctx, leaving, newStore); err != nil {
		return Fleet{}, err
	}
	handover, err := k.finish(ctx, leaving, newStore)
	if err != nil {
		return Fleet{}, err
	}
	other := Fleet{Layout: k.layout.Clone(), From: from, To: to}
	if handover.Floor > 0 {
		other.Floor = k.until(handover.Floor)
	}
	for _, c := range handover.Later {
		other.Later = append(other.Later, LaterNode{Node: c.Node, Until: k.until(c.Record.Limit)})
	}
	return other, nil
}

// narrowTo takes numbers out of the fleet's cell, unless that was done before.
func (k *keys) narrowTo(ctx context.Context, leaving cell.Nodes, to string) error {
	return again(func() error {
		version, f, err := knownFleet(ctx, &k.calls)
		if err != nil {
			return err
		}
		k.fleet = f
		has := f.Nodes
		if i := slices.IndexFunc(f.Gone, func(g cell.Gone) bool { return g.Nodes == leaving }); i >= 0 {
			if name := cmp.Or(f.Gone[i].Store, to); name != to { // (E)
				return drive.Wrap(fmt.Sprintf("node numbers %d to %d were moved to %s: 'tickflake lease end --to %[3]q' prints its command again", leaving.From, leaving.To-1, cell.Where(name)), ErrMoved)
			}
			return nil
		}
		rest := cell.Nodes{From: has.From, To: leaving.From}
		if leaving.From == has.From {
			rest = cell.Nodes{From: leaving.To, To: has.To}
		}
		if rest.From == rest.To {
			rest = cell.Nodes{}
		}
		switch {
		case has == cell.Nodes{}:
			return endedError(&f)
		case leaving.From < has.From || leaving.To > has.To || leaving.From != has.From && leaving.To != has.To:
			return refuse("EndFleet", "node numbers %d to %d: want some at the lower or the upper end of those of this store, %d to %d", leaving.From, leaving.To-1, has.From, has.To-1)
		}
		if err := k.checkLimits(ctx, leaving); err != nil {
			return err
		}
		f.Nodes, f.Gone = rest, append(slices.Clip(f.Gone), cell.Gone{Nodes: leaving, Store: to})
		last := f // there must be room to end the rest
		if rest != (cell.Nodes{}) {
			last.Nodes, last.Gone = cell.Nodes{}, append(slices.Clip(f.Gone), cell.Gone{Nodes: rest, Store: strings.Repeat("-", cell.MaxTo)})
		}
		if err := stores.CheckValue(last.Encode()); err != nil {
			return refuse("EndFleet", "this fleet has given numbers away %d times, and its cell has no room for more: end all of it", len(f.Gone)-1)
		}
		if _, err = k.swapFleet(ctx, version, f); err != nil && !errors.Is(err, stores.ErrConflict) { // of unknown outcome
			err = fmt.Errorf("the node numbers have perhaps left: try again: %w", err)
		}
		return err
	})
}

// checkLimits returns an error if most limits of numbers are far ahead of the clock. Those of reservations and of past
// numbers tell of no clock.
func (k *keys) checkLimits(ctx context.Context, nodes cell.Nodes) error {
	far, last := int64(0), grant.Cell{}
	err := k.eachCell(ctx, nodes, func(c grant.Cell) error {
		if !c.Record.Reserved && c.Record.Past == "" && k.isFar(c.Record) {
			far++
			last = c
		}
		return nil
	})
	if err == nil && 2*far > nodes.To-nodes.From {
		err = fmt.Errorf("%w: %d of %d node numbers were granted more than two windows ahead of this clock, which says %s, such as %d until %s: set this clock right, or wait",
			ErrSkew, far, nodes.To-nodes.From, k.clock.Now().UTC().Format(time.RFC3339), last.Node, k.time(last.Record.Limit).Format(time.RFC3339))
	}
	return err
}

func (k *keys) isFar(r cell.Node) bool {
	return grant.Far(r, k.fleet.Floor, k.tick(), k.config.window)
}

// eachCell calls each with the cells of numbers, also those that do not exist.
func (k *keys) eachCell(ctx context.Context, nodes cell.Nodes, each func(grant.Cell) error) error {
	for from := nodes.From; from < nodes.To; from += listed {
		to := min(from+listed, nodes.To)
		found, err := k.list(ctx, cell.NodeKey(from), cell.NodeKey(to), listed, func(int64, error) {}) // who writes a damaged cell reads it, and says why
		for node := from; node < to && err == nil; node++ {
			c := grant.Cell{Node: node}
			if len(found) > 0 && found[0].Node == node {
				c, found = found[0], found[1:]
			}
			err = each(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listed is how many node numbers are listed at a time.
const listed = 4096

// finish makes all cells final (A), and returns what creates the other fleet by these. Those that are held come last,
// so that their processes have the rest of a fresh grant when all is done.
func (k *keys) finish(ctx context.Context, leaving cell.Nodes, to string) (grant.Handover, error) {
	handover, done, held := grant.Handover{Floor: k.fleet.Floor}, 0, []grant.Cell(nil)
	leave := func(c grant.Cell) error {
		c, err := k.final(ctx, c, to)
		if err != nil {
			return fmt.Errorf("%d of %d node numbers have left, run it again to continue: %w", done, leaving.To-leaving.From, err)
		}
		done++
		handover.Add(c)
		return nil
	}
	err := k.eachCell(ctx, leaving, func(c grant.Cell) error {
		if c.Record.Holder != "" {
			held = append(held, c)
			return nil
		}
		return leave(c)
	})
	for i := 0; i < len(held) && err == nil; i++ {
		err = leave(held[i])
	}
	return handover, err
}

// final makes the cell of a number final, which is as a list had it, and returns it.
func (k *keys) final(ctx context.Context, c grant.Cell, to string) (grant.Cell, error) {
	for i := range drive.InARow {
		switch {
		case c.Damaged: // the read says why
		case c.Record.MovedTo == "":
			r := grant.Final(c.Record, k.fleet.Floor, k.isFar(c.Record), to, cell.Token())
			r.Layout = cmp.Or(r.Layout, k.spec)
			version, err := k.swap(ctx, c.Node, c.Version, r)
			if err == nil {
				return grant.Cell{Node: c.Node, Version: version, Record: r}, nil
			}
			if !errors.Is(err, stores.ErrConflict) {
				return c, err // of unknown outcome: a second call reads it
			}
		case c.Record.MovedTo != to: // (E)
			return c, movedError(c.Node, c.Record.MovedTo)
		case i > 0:
			return c, nil
		} // a list may show a write that a crash undoes
		var err error
		if c, err = k.readCell(ctx, c.Node); err != nil {
			return c, err
		}
	}
	return c, errBusy
}

// checkInFleet returns an error unless a number, given to an option or a function, is one of this store's. Any number, -1, is.
func (k *keys) checkInFleet(option string, node int64) error {
	f := &k.fleet
	if node < 0 || f.Nodes.Has(node) {
		return nil
	}
	for _, g := range f.Gone {
		if g.Has(node) {
			return movedError(node, g.Store)
		}
	}
	return refuse(option, "node number %d is none of this store's, which has %d to %d: see 'tickflake lease fleet'", node, f.Nodes.From, f.Nodes.To-1)
}

// numbers is how many node numbers the store has.
func (k *keys) numbers() int64 { return k.fleet.Nodes.To - k.fleet.Nodes.From }
