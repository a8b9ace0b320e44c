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
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const leaseHelp = `Show the node numbers of a store, reserve them, say which numbers a store has, and
move them to another one.

A node number is

  held       by a process. In a directory that process is alive; elsewhere it may be
             alive until one window after UNTIL
  released   by its last process, and free
  expired    its last process ended without a release: in a directory at once,
             elsewhere one window after UNTIL; free
  reserved   until UNTIL, see 'tickflake lease reserve'
  moved      to the store in OWNER, for good, see 'tickflake lease end'
  past       it issues IDs for old rows, for good, see 'tickflake lease past'
  retired    it was past, and issues nothing any more
  damaged    its cell cannot be read: no process claims or overwrites it

UNTIL is the limit of the last grant. The next grant begins there, whatever any
clock says; if the number has moved, it begins in the other store. CLOCK is how
far the holder's clock is ahead of this one, to a sixth of the holder's window. It
is unknown (-) if an extension is overdue: UNTIL is less than two thirds of the
window away. "was ahead?" marks a number without a living holder whose UNTIL is more
than a minute and two windows away, and as far beyond the fleet's floor: this clock
is behind, or the last holder's was ahead.

` + nodeStoresHelp

const leaseListHelp = `List the node numbers that were ever claimed, reserved or moved, or those in NODES: a
number, or a range such as 0-3. Numbers in a row that moved to one store are one
line, with the latest UNTIL; so are those in a row of the past.

With --format json each is an object on a line of its own with the fields node,
state, owner, until, remaining_seconds (of the grant), ahead_seconds (the holder's
clock, null if unknown), window_seconds, layout and error.

The exit code is 1 if a cell is damaged. Each is reported on standard error, too.
So is a damaged cell that is no node number's.`

// leases is common to the lease commands.
type leases struct {
	*command.Console
	*place
	layout *snowflake.Layout
	floor  time.Time // of the fleet that was listed
}

func newLease(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show, reserve and move node numbers, or give them to the past",
		Long:  leaseHelp,
	}
	cmd.AddCommand(newLeaseList(c), newLeaseReserve(c), newLeaseFleet(c), newLeaseEnd(c), newLeasePast(c))
	addExec(cmd, c)
	return cmd
}

// newLeases adds the flags of the lease commands. A store has one layout, so that a command needs none
// beside it, unless it writes to an empty store.
func newLeases(c *command.Console, cmd *cobra.Command, writesFirst bool) *leases {
	l := &leases{Console: c}
	l.place = placeFlags(cmd, keptNodes, func() string { return layoutDirectory(*l.layout) })
	l.layout = layoutFlag(cmd)
	usage := "if the store is empty"
	if !writesFirst {
		usage = "to choose among the directories of the per-user state directory"
		cmd.MarkFlagsMutuallyExclusive("layout", "store")
	}
	cmd.Flags().Lookup("layout").Usage = "use the layout `NAME|SPEC`, " + usage + " (default \"" + snowflake.Default().Name + "\")"
	return l
}

func newLeaseList(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [NODES]",
		Short: "List node numbers and their holders",
		Long:  leaseListHelp,
		Example: `  tickflake lease list
  tickflake lease list 0-3 --store 'etcd://10.0.0.1:2379?namespace=orders'
  tickflake lease list -o json | jq -r 'select(.state == "held").owner'`,
		Args: cobra.MaximumNArgs(1),
	}
	l := newLeases(c, cmd, false)
	format := command.FormatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, err := nodeRange(cmp.Or(strings.Join(args, ""), fmt.Sprint("0-", maxNode)))
		if err != nil {
			return err
		}
		all, damaged, err := list(cmd.Context(), l.Console, l.place, l.holdings)
		if err != nil {
			return err
		}
		var bad []error
		for _, c := range damaged {
			if node, ok := cell.NodeOf(c.Key); !ok {
				bad = append(bad, c)
			} else {
				all = append(all, lease.Holding{Node: node, State: lease.Damaged, Err: c})
			}
		}
		slices.SortFunc(all, func(a, b lease.Holding) int { return cmp.Compare(a.Node, b.Node) })
		all = slices.DeleteFunc(all, func(h lease.Holding) bool { return h.Node < from || h.Node > to })
		for _, h := range all {
			if h.Err != nil {
				bad = append(bad, h.Err)
			}
		}
		return cmp.Or(l.print(*format, all), l.Report(bad...))
	}
	return cmd
}

// print writes node numbers as a table, or one JSON object per line.
func (l *leases) print(format string, all []lease.Holding) error {
	var rows []holding
	for _, h := range all {
		if n := len(rows); n == 0 || format == command.FormatJSON || !rows[n-1].absorb(h) {
			row := holdingOf(h, time.Now())
			row.floor = l.floor
			rows = append(rows, row)
		}
	}
	return command.Print(l.Out, format, rows, []string{"NODE", "STATE", "OWNER", "UNTIL", "CLOCK"}, holding.row)
}

// holdings lists the node numbers of a store. If there are none, and it has a fleet, the error says which.
func (l *leases) holdings(ctx context.Context, store stores.Store) ([]lease.Holding, error) {
	all, err := lease.List(ctx, store)
	f, read := lease.ReadFleet(ctx, store)
	if l.floor = f.Floor; len(all) == 0 && err == nil && read == nil {
		l.never, l.remedy = "no node number was claimed yet", "the fleet has "+fleetText(f)
	}
	return all, err
}

// maxNode is the largest node number of any layout.
const maxNode = 1<<22 - 1

// nodeRange reads a node number or a range such as 0-3.
func nodeRange(s string) (from, to int64, err error) {
	from, to, ok := numberRange(s, 0, maxNode)
	if !ok {
		return 0, 0, cli.Usage(fmt.Errorf("want a node number, of the largest layout up to %d, or a range such as 0-3, got %q", int64(maxNode), s))
	}
	return from, to, nil
}

const leaseReserveHelp = `Reserve node numbers for systems that do not use this store, such as another ID
generator during a migration: no process claims them before the date.

NODES is a number, or a range such as 0-3. DATE is 2026-12-31 (to its end, in UTC)
or 2026-12-31T12:00:00Z. A reservation can be lengthened and not shortened, so on a
terminal the command asks first. Numbers that are held are refused, and those of the
past are retired, as after a restore. An empty store gets the layout of --layout, for
good: its processes need the same. The command prints the numbers as 'tickflake lease
list' does.

A number that was used here before has its own IDs. If the other system composes IDs
for old rows with it, it repeats them: 'tickflake lease past' is for old rows.`

func newLeaseReserve(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reserve NODES --until DATE",
		Short: "Reserve node numbers for systems that do not use the store",
		Long:  leaseReserveHelp,
		Example: `  tickflake lease reserve 0-3 --until 2027-06-30
  tickflake lease reserve 7 --until 2027-06-30T12:00:00Z --store etcd://10.0.0.1:2379`,
		Args: cobra.ExactArgs(1),
	}
	l := newLeases(c, cmd, true)
	l.makes = true
	var until time.Time
	command.Flag(cmd, "until", "end the reservation at `DATE`", &until, parseUntil)
	_ = cmd.MarkFlagRequired("until") // it was just added
	yes := cmd.Flags().Bool("yes", false, "do not ask on a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, err := nodeRange(args[0])
		if err != nil {
			return err
		}
		which := choose(to > from, fmt.Sprintf("node numbers %d to %d", from, to), fmt.Sprintf("node number %d", from))
		question := fmt.Sprintf("no process claims %s of %s before %s, no reservation is shortened, and numbers of the past are retired\nreserve?", which, l.name(), limitText(until, time.Now()))
		asked := *yes || !command.IsTerminal(l.In) // who wrote a script has looked at the date
		if err := l.Confirm(cmd.Context(), asked, "reservation", question, fmt.Errorf("%s: not reserved", which)); err != nil {
			return err
		}
		var reserved []lease.Holding
		used := int64(-1)
		err = l.with(cmd.Context(), func(ctx context.Context, store stores.Store) error {
			for node := to; node >= from; node-- {
				if h, err := lease.Inspect(ctx, store, node); err == nil && (h.State == lease.Released || h.State == lease.Expired) {
					used = node
				}
			}
			err := lease.Reserve(ctx, store, from, to, until, lease.WithLayout(*l.layout), lease.WithTimeout(l.timeout))
			if other, ok := errors.AsType[*lease.LayoutMismatchError](err); ok && !cmd.Flags().Changed("layout") {
				err = lease.Reserve(ctx, store, from, to, until, lease.WithLayout(other.Theirs), lease.WithTimeout(l.timeout))
			}
			for node := from; err == nil && node <= to; node++ {
				var h lease.Holding
				h, err = lease.Inspect(ctx, store, node)
				reserved = append(reserved, h)
			}
			return err
		})
		if err != nil {
			return err
		}
		if used >= 0 {
			l.Complain(fmt.Errorf("node number %d was used in this store before: another system must not issue IDs of a time before now with it", used))
		}
		return l.print(command.FormatText, reserved)
	}
	return cmd
}

// parseUntil reads an instant, or a date, which stands for its end in UTC.
func parseUntil(s string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := parseInstant(s)
	if err != nil {
		err = fmt.Errorf("want a date such as 2027-06-30 or 2027-06-30T12:00:00Z, got %q", s)
	}
	return at, err
}

// parseInstant reads an instant. A date is none: IDs repeat if a fleet begins with the day on which another ends,
// and wait for a day if it begins with the next.
func parseInstant(s string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day, fmt.Errorf("want an instant, and %s is a day: it begins at %s and ends at %s", s, day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339))
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return at, fmt.Errorf("want a time such as 2027-06-30T12:00:00Z, got %q", s)
	}
	return at.UTC(), nil
}

// untilFormat is that of limits: the milliseconds are the ticks of most layouts.
const untilFormat = "2006-01-02T15:04:05.000Z"

// holding is the JSON of a node number.
type holding struct {
	Node      int64    `json:"node"`
	State     string   `json:"state"`
	Owner     string   `json:"owner"`
	Until     string   `json:"until"`
	Remaining float64  `json:"remaining_seconds"`
	Ahead     *float64 `json:"ahead_seconds"`
	Window    float64  `json:"window_seconds"`
	Layout    string   `json:"layout"`
	Error     string   `json:"error"`

	of    lease.Holding
	now   time.Time
	floor time.Time // of the fleet
	last  int64     // of the node numbers of the line
}

func holdingOf(of lease.Holding, now time.Time) holding {
	h := holding{Node: of.Node, State: of.State.String(), Owner: of.Owner, of: of, now: now, last: of.Node}
	if of.Err != nil {
		h.Error = of.Err.Error()
		return h
	}
	h.Until, h.Remaining = of.Limit.UTC().Format(time.RFC3339Nano), of.Limit.Sub(now).Seconds()
	h.Window, h.Layout = of.Window.Seconds(), of.Layout.String()
	// An extension that is overdue says nothing of the holder's clock.
	if of.State == lease.Held && (of.Ahead != 0 || h.Remaining >= h.Window/3*2) {
		ahead := of.Ahead.Seconds()
		h.Ahead = &ahead
	}
	return h
}

// absorb takes the next node number into the line, if both have moved to one store, or are of the past.
func (h *holding) absorb(next lease.Holding) bool {
	if next.State != lease.Moved && next.State != lease.OfPast && next.State != lease.Retired || h.of.State != next.State || next.Owner != h.Owner || next.Node != h.last+1 {
		return false
	}
	h.last = next.Node
	if next.Limit.After(h.of.Limit) {
		h.of.Limit = next.Limit
	}
	return true
}

// row is the holding as a line of a table.
func (h holding) row() []string {
	nodes := choose(h.last > h.Node, fmt.Sprintf("%d-%d", h.Node, h.last), fmt.Sprint(h.Node))
	return []string{nodes, h.State, ownerText(h.of), untilText(h.of, h.now), h.clock()}
}

// clock returns how far the holder's clock is ahead of this one, and the error of that.
func (h holding) clock() string {
	known := h.of.Window / 6
	switch {
	case h.Ahead == nil && h.doubtful():
		return "was ahead?"
	case h.Ahead == nil:
		return "-"
	case h.of.Ahead <= known:
		return fmt.Sprintf("±%s", roundly(known))
	}
	return fmt.Sprintf("+%s ±%s", roundly(h.of.Ahead), roundly(known))
}

// doubtful reports whether the limit lies so far ahead that this clock is behind, or the last holder's was ahead.
func (h holding) doubtful() bool {
	return (h.of.State == lease.Held || h.of.State == lease.Expired || h.of.State == lease.Released) && h.of.Limit.Sub(latest(h.now, h.floor)) > time.Minute+2*h.of.Window
}

func ownerText(h lease.Holding) string { return command.Visible(cmp.Or(h.Owner, "-")) }

// untilText returns a limit and its distance, if there is one.
func untilText(h lease.Holding, now time.Time) string {
	if h.Err != nil || h.State == lease.OfPast || h.State == lease.Retired || h.State == lease.Moved && !h.Limit.After(h.Layout.Epoch) { // nothing was granted
		return "-"
	}
	return limitText(h.Limit, now)
}

func limitText(limit, now time.Time) string {
	left := limit.Sub(now)
	return fmt.Sprintf("%s (%s)", limit.UTC().Format(untilFormat), choose(left < 0, roundly(-left)+" ago", "in "+roundly(left)))
}

// roundly rounds a duration to a millisecond, or to a second from 10 seconds on.
func roundly(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return span.Text(d.Round(time.Second))
}
