package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

const leaseFleetHelp = `Show which node numbers a store has, and from when on; or, with --nodes, create its
fleet with them.

Stores with one layout and different numbers are sites of it, such as regions:
they need nothing in common, and their IDs never meet. Create each fleet before a
process uses the store: else the first process creates one with all numbers. A store
never gets more numbers, and its floor never moves; 'tickflake lease end' takes
numbers away. To create the same fleet again is no error.

NODES is a number, or a range such as 512-1023. With --later a number begins later
than the floor. With --past numbers issue IDs for old rows; the command asks first.
TIME is an instant such as 2026-12-31T12:00:00Z. Nothing is issued before the floor,
so the command asks first if it is ahead of this clock.
`

const leaseEndHelp = `Give node numbers away for good: those in NODES, at the lower or the upper end of
what the store has, or all. It prints the command that creates the fleet of another
store with them: run that once, for one store, before a process uses it.
docs/move.md has all steps. If --to is a URL or a path that can be read from here,
that store must have no fleet.

This store grants nothing with these numbers any more, whatever any clock says. That
cannot be undone; to stay on the same server, use another namespace of it. Running
processes issue the rest of their grants, then use another number, or fail with the
name of the new store if there is none.

A number whose limit is more than two windows ahead of this clock begins later in
the other store. If most limits lie that far ahead, without those of reservations,
the command refuses, since the clock is wrong. It writes each number once. If it
ends early, run it again: it continues, and prints the same numbers.`

func newLeaseFleet(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show which node numbers a store has, or create its fleet",
		Long:  leaseFleetHelp,
		Example: `  tickflake lease fleet --store etcd://10.0.0.1:2379
  tickflake lease fleet --nodes 512-1023 --store etcd://eu.example.com
  tickflake lease fleet --nodes 0-1023 --past 1016-1023 --store etcd://eu.example.com`,
		Args: cobra.NoArgs,
	}
	l := newLeases(c, cmd, true)
	nodes := cmd.Flags().String("nodes", "", "create a fleet with the node numbers `NODES`")
	var want lease.Fleet
	command.Flag(cmd, "floor", "let no process claim a number before `TIME`", &want.Floor, parseInstant)
	past := pastFlags(cmd, "past", "give `NODES` to the past, for IDs of old rows: see 'tickflake lease past'")
	later := cmd.Flags().StringArray("later", nil, "let a number begin later, by `NODE=TIME`; may be repeated")
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		creates := given("nodes")
		if !creates && (len(*later) > 0 || given("past") || given("floor")) {
			return cli.Usage(errors.New("--floor, --later and --past need --nodes"))
		}
		if !given("past") && (given("bucket") || given("lane") || given("unused")) {
			return cli.Usage(errors.New("--bucket, --lane and --unused need --past"))
		}
		for _, text := range *later {
			node, until, _ := strings.Cut(text, "=")
			n, err := wholeNumber(node)
			at, late := parseInstant(until)
			if err = cmp.Or(err, late); err != nil {
				return cli.Usage(fmt.Errorf("--later %q: %w", text, err))
			}
			want.Later = append(want.Later, lease.LaterNode{Node: n, Until: at})
		}
		ctx := cmd.Context()
		f, err := ask(ctx, l.place, lease.ReadFleet)
		none := isA[*missingError](err) || errors.Is(err, lease.ErrNeverClaimed)
		if err != nil && !(none && creates) {
			return err
		}
		if !creates {
			return l.show(f)
		}
		want.Layout = *l.layout
		if !none && !cmd.Flags().Changed("layout") {
			want.Layout = f.Layout
		}
		if want.From, want.To, err = nodeRange(*nodes); err != nil {
			return err
		}
		if given("past") {
			var numbers lease.Past
			if numbers, err = past.numbers(); err != nil {
				return err
			}
			want.Past = []lease.Past{numbers}
			if !none { // of a new fleet, SetFleet looks before it writes
				err = l.with(ctx, func(ctx context.Context, store stores.Store) error {
					return lease.CheckPast(ctx, store, numbers, lease.WithLayout(want.Layout), lease.WithTimeout(l.timeout))
				})
			}
		}
		if err == nil && (none || given("past")) { // else it changes nothing
			err = l.confirmFloor(ctx, *yes, want)
		}
		if err != nil {
			return err
		}
		l.makes = true
		f, err = ask(ctx, l.place, func(ctx context.Context, store stores.Store) (lease.Fleet, error) {
			if err := lease.SetFleet(ctx, store, want, lease.WithTimeout(l.timeout)); err != nil {
				return f, err
			}
			return lease.ReadFleet(ctx, store)
		})
		if err != nil {
			return err
		}
		return l.show(f)
	}
	return cmd
}

// confirmFloor asks before a fleet is created of which nothing is granted for a while.
func (l *leases) confirmFloor(ctx context.Context, yes bool, f lease.Fleet) error {
	now, last, question := time.Now(), f.Floor, ""
	if f.Floor.After(now) {
		question = fmt.Sprintf("no process claims a node number of %s before %s\n", l.name(), limitText(f.Floor, now))
	}
	for _, b := range f.Later {
		if last = latest(last, b.Until); b.Until.After(now) {
			question += fmt.Sprintf("no process claims node number %d of %s before %s\n", b.Node, l.name(), limitText(b.Until, now))
		}
	}
	act := "floor, which is " + roundly(last.Sub(now)) + " ahead of the clock"
	for _, p := range f.Past {
		if act = "past"; question != "" {
			act = "floor and the past"
		}
		question += pastQuestion(p, l.name())
	}
	return l.Confirm(ctx, yes || question == "", act,
		question+"a floor never moves; create the fleet?", errors.New("the fleet was not created"))
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// show prints a fleet.
func (l *leases) show(f lease.Fleet) error {
	nodes := choose(f.Ended, "none, the fleet has ended", fmt.Sprintf("%d to %d", f.From, f.To))
	rows := [][]string{{"layout", f.Layout.String()}, {"nodes", nodes}, {"floor", floorText(f.Floor)}}
	for _, p := range f.Past {
		rows = append(rows, []string{"past", pastText(p)})
	}
	for _, m := range f.Left {
		rows = append(rows, []string{"left", fmt.Sprintf("%d to %d, to %s", m.From, m.To, cell.Where(m.Store))})
	}
	return command.Table(l.Out, nil, rows)
}

func floorText(floor time.Time) string {
	return choose(floor.IsZero(), "none", floor.Format(time.RFC3339Nano))
}

// fleetText says what a fleet has, in one line.
func fleetText(f lease.Fleet) string {
	if f.Ended {
		return "no node number left"
	}
	return fmt.Sprintf("the node numbers %d to %d, floor %s", f.From, f.To, floorText(f.Floor))
}

func newLeaseEnd(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end [NODES]",
		Short: "Give node numbers away for good, to another store",
		Long:  leaseEndHelp,
		Example: `  tickflake lease end --store ./ids --to etcd://10.0.0.1:2379 --yes
  tickflake lease end 512-1023 --store etcd://10.0.0.1 --to etcd://10.0.9.1`,
		Args: cobra.MaximumNArgs(1),
	}
	l := newLeases(c, cmd, false)
	l.timeout = time.Minute // it writes all node numbers
	timeout := cmd.Flags().Lookup("timeout")
	timeout.Usage = strings.Replace(timeout.Usage, "5s", l.timeout.String(), 1)
	to := cmd.Flags().String("to", "", "name the new store by its `URL` or a name, for the errors of processes that still use this one; user, password and options of a URL are left out")
	_ = cmd.MarkFlagRequired("to") // it was just added
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if strings.Contains(*to, "/") { // else it is a name for people
			*to = absolute(*to)
		}
		name := publicName(*to)
		if err := cell.CheckTo(name); err != nil {
			return cli.Usage(fmt.Errorf("--to: %w", err))
		}
		f, err := ask(ctx, l.place, lease.ReadFleet)
		if err == nil && len(args) > 0 {
			f.From, f.To, err = nodeRange(args[0])
		}
		if err != nil {
			return err
		}
		unread, err := l.checkNew(ctx, *to, f)
		if err != nil {
			return err
		}
		which := fmt.Sprintf("the node numbers %d to %d", f.From, f.To)
		question := fmt.Sprintf("%s continue in %s, and nothing is granted with them by %s any more, for good\n%send them?", which, name, l.name(), unread)
		if err := l.Confirm(ctx, *yes, "end", question, fmt.Errorf("%s have not ended", which)); err != nil {
			return err
		}
		now := time.Now().UTC()
		other, err := ask(ctx, l.place, func(ctx context.Context, store stores.Store) (lease.Fleet, error) {
			return lease.EndFleet(ctx, store, f.From, f.To, name, lease.WithTimeout(l.timeout))
		})
		if err != nil {
			return err
		}
		store, layout := quoted(*to), other.Layout.String()
		if name != *to || !strings.Contains(*to, "/") { // it has a password or a namespace, or is a name for people
			store = `"$NEW"`
		}
		found := fmt.Sprintf("%s lease fleet --store %s --layout %s --nodes %d-%d", program(), store, quoted(layout), f.From, f.To)
		if !other.Floor.IsZero() || len(other.Later) > 0 {
			found += " --yes"
		}
		if !other.Floor.IsZero() {
			found += " --floor " + floorText(other.Floor)
		}
		for _, b := range other.Later {
			found += fmt.Sprintf(" \\\n  --later %d=%s", b.Node, floorText(b.Until))
		}
		fmt.Fprintf(l.Out, "# %s have left for %s. Create its fleet with them, once, before a process uses that store:\n", which, name)
		if store == `"$NEW"` {
			fmt.Fprintf(l.Out, "# NEW is its URL.\n")
		}
		if unread != "" {
			fmt.Fprintf(l.Out, "# %s", unread)
		}
		if len(other.Later) > 0 {
			fmt.Fprintf(l.Out, "# Those with --later were granted more than two windows ahead of the clock when they left; this one says %s.\n", now.Format(time.RFC3339))
		}
		_, err = fmt.Fprintln(l.Out, found)
		return err
	}
	return cmd
}

// lookTimeout bounds the look at the store that numbers go to, which may not be reached from here.
const lookTimeout = 5 * time.Second

// checkNew returns an error if the store of --to has a fleet, unless these numbers of f have left before: a fleet that is
// there already may be used, or be this one by another name. unread is a line that says why that is not known, or empty.
func (l *leases) checkNew(ctx context.Context, to string, f lease.Fleet) (unread string, err error) {
	gone := slices.ContainsFunc(f.Left, func(g lease.MovedNodes) bool { return g.From == f.From && g.To == f.To })
	if gone || !strings.Contains(to, "/") { // a name for people
		return "", nil
	}
	there := &place{kept: keptNodes, url: to, source: "--to", timeout: l.timeout}
	bounded, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("no answer within %s", lookTimeout))
	defer cancel()
	other, err := ask(bounded, there, lease.ReadFleet)
	wrong, ok := errors.AsType[*stores.URLError](err)
	switch {
	case ok && wrong.Err == nil: // it names no store from anywhere; a file of certificates may be missing here alone
		return "", err
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case isA[*missingError](err), errors.Is(err, lease.ErrNeverClaimed):
		return "", nil
	case errors.Is(err, lease.ErrMoved), errors.Is(err, stores.ErrDamaged):
		return "", cli.Usage(fmt.Errorf("--to: %s: %w", there.name(), err))
	case err != nil:
		return command.Visible(fmt.Sprintf("%s could not be read: %v", there.name(), err)) + "\n", nil
	}
	return "", cli.Usage(fmt.Errorf("--to: %s has a fleet, with %s: name a store or a namespace without one", there.name(), fleetText(other)))
}

const leasePastHelp = `Give node numbers to the past, for good: they issue IDs for old rows ('tickflake
generate --at', or generator.OpenPast), each of its row's own time, and no
process claims them any more. docs/past.md has all steps.

Only numbers that were never used can be given. A number whose cell was ever
written is refused. If the fleet has a floor, another store may have used the
numbers: they are refused, unless --unused says that they were not. The store cannot
see generators that do not use it.

Time is divided into buckets, and the IDs of a tick into lanes. For each bucket of
which it has rows, a process writes once to the store, and gets a lane of the bucket.
All past numbers of a store have the same buckets and lanes.

--retire ends it, also for good: the numbers issue no IDs any more. If the store was
restored from a backup, retire all numbers that were ever given to the past, before
a process uses the store.`

// giving are the flags of numbers that are given to the past.
type giving struct {
	nodes  string
	bucket time.Duration
	lane   int64
	unused *bool
}

// pastFlags adds them; name is the flag of the numbers.
func pastFlags(cmd *cobra.Command, name, usage string) *giving {
	g := &giving{}
	cmd.Flags().StringVar(&g.nodes, name, "", usage)
	durationFlag(cmd, "bucket", "make a bucket of the past numbers `DURATION` long, a multiple of the layout's tick (default 24h0m0s, on Kubernetes 720h)", &g.bucket)
	command.Flag(cmd, "lane", "put `N` IDs of a tick into one lane of the past numbers, a power of two (default 16)", &g.lane, atLeast("1", wholeNumber))
	g.unused = cmd.Flags().Bool("unused", false, "no ID was ever issued with the past numbers, although the store cannot know it")
	return g
}

func (g *giving) numbers() (lease.Past, error) {
	from, to, err := nodeRange(g.nodes)
	return lease.Past{From: from, To: to, Bucket: g.bucket, Lane: g.lane, Unused: *g.unused}, err
}

// pastQuestion says what is asked before numbers are given to the past.
func pastQuestion(p lease.Past, store string) string {
	return fmt.Sprintf(`%s of %s issue IDs for old rows, and no process claims them any more, for good
IDs of generators that do not use this store cannot be seen from here, such as bwmarrin's or New(WithNode): none may ever have used these numbers
`, numbersText(p), store)
}

func numbersText(p lease.Past) string { return fmt.Sprintf("the node numbers %d to %d", p.From, p.To) }

func pastText(p lease.Past) string {
	how := fmt.Sprintf("buckets of %s, lanes of %d", p.Bucket, p.Lane)
	return fmt.Sprintf("%d to %d, %s", p.From, p.To, choose(p.Retired, "retired", how))
}

func newLeasePast(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "past --nodes NODES",
		Short: "Give node numbers to the past, for the IDs of old rows",
		Long:  leasePastHelp,
		Example: `  tickflake lease past --nodes 1016-1023 --store etcd://10.0.0.1:2379
  tickflake lease past --nodes 1016-1023 --retire --store ./ids --yes`,
		Args: cobra.NoArgs,
	}
	l := newLeases(c, cmd, true)
	g := pastFlags(cmd, "nodes", "give `NODES`, a number or a range such as 1016-1023")
	_ = cmd.MarkFlagRequired("nodes") // it was just added
	retire := cmd.Flags().Bool("retire", false, "issue no IDs with these numbers any more")
	for _, other := range []string{"bucket", "lane", "unused"} {
		cmd.MarkFlagsMutuallyExclusive("retire", other)
	}
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		f, err := ask(ctx, l.place, lease.ReadFleet)
		if errors.Is(err, lease.ErrNeverClaimed) && !*retire {
			f, err = lease.Fleet{Layout: *l.layout}, nil
		}
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("layout") && f.Layout.String() != l.layout.String() {
			return cli.Usage(fmt.Errorf("--layout: %w", &lease.LayoutMismatchError{Ours: *l.layout, Theirs: f.Layout}))
		}
		p, err := g.numbers()
		if err != nil {
			return err
		}
		p.Retired = *retire
		options := []lease.Option{lease.WithLayout(f.Layout), lease.WithTimeout(l.timeout)}
		err = l.with(ctx, func(ctx context.Context, store stores.Store) error { return lease.CheckPast(ctx, store, p, options...) })
		if err != nil { // nothing is asked
			return err
		}
		question, act := pastQuestion(p, l.name())+"give them to the past?", "past"
		if *retire {
			question, act = fmt.Sprintf("no ID is issued any more with %s of %s, for old rows or by a process, for good\nretire them?", numbersText(p), l.name()), "retirement"
		}
		if err := l.Confirm(ctx, *yes, act, question, fmt.Errorf("%s: nothing was changed", numbersText(p))); err != nil {
			return err
		}
		err = l.with(ctx, func(ctx context.Context, store stores.Store) error {
			if *retire {
				return lease.RetirePast(ctx, store, p.From, p.To, options...)
			}
			return lease.GivePast(ctx, store, p, options...)
		})
		if err == nil {
			f, err = ask(ctx, l.place, lease.ReadFleet)
		}
		if err != nil {
			return err
		}
		return l.show(f)
	}
	return cmd
}
