package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

const layoutHelp = `A layout says what the bits of an ID mean: the epoch and the unit of its time
(the tick), the widths of time, node and sequence, and their order.`

const layoutShowHelp = `Show a layout: its bits, its capacity, and its spec; without one, list the layouts
that have a name. One whose time is over still decodes IDs. A layout is given by one
of

  NAME                          a name of that list
  NAME,epoch=2026-01-01         the same with another epoch, tick or both
  41/10/12                      widths of time, node and sequence
  41/10/12,tick=10ms            the same with an epoch, a tick or both
  time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z

The last form lists the fields from the high bits to the low ones. Other names
than time and sequence are parts of the node, which also may come last. The tick
is 1ms and the epoch 2025-01-01 unless given; an epoch is an instant, a date, or
milliseconds since 1970.`

const layoutPlanHelp = `Propose a layout for a number of nodes, a rate and a lifetime.

Node and sequence get the bits that they need, and the time field all the others.
The output states the demand that the layout is for. If the demand does not fit, the
error says what would fit, and the exit code is 1.`

func newLayout(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "layout",
		Short: "Show and plan layouts: what the bits of an ID mean",
		Long:  layoutHelp,
	}
	cmd.AddCommand(newLayoutShow(c), newLayoutPlan(c), newLayoutIDs(c), newLayoutSQL(c))
	return cmd
}

func newLayoutShow(c *command.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME|SPEC]",
		Short: "Show a layout: its bits, capacity and spec; or list all",
		Long:  layoutShowHelp,
		Example: `  tickflake layout show
  tickflake layout show twitter
  tickflake layout show 41/10/12,epoch=2026-01-01
  tickflake layout show time=39,sequence=8,machine=16,tick=10ms`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listLayouts(c.Out)
			}
			l, err := snowflake.ParseLayout(args[0])
			if err != nil {
				return cli.Usage(err)
			}
			return describe(c.Out, l)
		},
	}
}

func newLayoutPlan(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan --generators N",
		Short: "Propose a layout for a demand",
		Long:  layoutPlanHelp,
		Example: `  tickflake layout plan --generators 3000
  tickflake layout plan --generators 100 --rate 50000 --years 30
  tickflake layout plan --generators 16 --rate 500 --epoch 2026-01-01 --bits 53`,
		Args: cobra.NoArgs,
	}
	// What a service needs at most, in most cases: a burst of 10,000 IDs per second in each process, for a working life.
	demand := snowflake.Demand{RatePerNode: 10_000, Years: 50}
	command.Flag(cmd, "generators", "plan for `N` generators that issue IDs at once", &demand.Nodes, wholeNumber)
	number := func(name, usage string, value *float64) {
		command.Flag(cmd, name, fmt.Sprintf("%s (default %g)", usage, *value), value, func(s string) (float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				err = fmt.Errorf("want a number, got %q", s)
			}
			return f, err
		})
	}
	number("rate", "plan for `R` IDs per second of one node, at its peak", &demand.RatePerNode)
	number("years", "let the layout last `Y` years from its epoch, not from now", &demand.Years)
	command.Flag(cmd, "bits", "use at most `N` bits, 53 if an ID must survive as a JavaScript number (default 63)", &demand.Bits, upTo(63)) // Plan takes 0 for the default
	epoch := snowflake.Default().Epoch.Format(time.DateOnly)
	command.Flag(cmd, "epoch", "count time from `INSTANT`, such as 2026-01-01 (default "+epoch+")", &demand.Epoch, snowflake.ParseEpoch)
	cmd.Flags().SortFlags = false
	_ = cmd.MarkFlagRequired("generators") // it was just added
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := snowflake.Plan(demand)
		if errors.Is(err, snowflake.ErrDemand) {
			return cli.Usage(err)
		}
		if err != nil {
			return err
		}
		return describe(c.Out, l, []string{"demand", fmt.Sprintf("%s nodes, %s IDs per second per node, %s years from the epoch",
			command.Number(demand.Nodes), command.Number(demand.RatePerNode), command.Number(demand.Years))})
	}
	return cmd
}

const layoutIDsHelp = `Print the smallest and the largest ID of the time from --from up to, but not
including, --to: for a query or a partition by time. A tick that only begins before
--from, or ends after --to, is not left out. TIME is an instant such as
2019-03-04T10:20:30Z.`

func newLayoutIDs(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ids --from TIME --to TIME",
		Short:   "Print the smallest and largest ID of a time",
		Long:    layoutIDsHelp,
		Example: `  tickflake layout ids --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z`,
		Args:    cobra.NoArgs,
	}
	layout := layoutFlag(cmd)
	var from, to time.Time
	command.Flag(cmd, "from", "begin at `TIME`", &from, parseInstant)
	command.Flag(cmd, "to", "end at `TIME`", &to, parseInstant)
	_, _ = cmd.MarkFlagRequired("from"), cmd.MarkFlagRequired("to") // they were just added
	cmd.RunE = func(*cobra.Command, []string) error {
		low, high, err := layout.Between(from, to)
		if err != nil {
			return cli.Usage(err)
		}
		_, err = fmt.Fprintf(c.Out, "smallest  %d\nlargest   %d\n", low, high)
		return err
	}
	return cmd
}

// listLayouts writes a line for each layout that has a name.
func listLayouts(w io.Writer) error {
	var rows [][]string
	for _, l := range snowflake.Presets() {
		capacity, ends := l.Capacity(), l.End().Format(time.DateOnly)
		if isOver(l) {
			ends += " (over)"
		}
		rows = append(rows, []string{l.Name, widths(l), l.Tick.String(), l.Epoch.UTC().Format(time.DateOnly), ends, command.Number(capacity.IDsPerSecond), command.Number(capacity.Nodes)})
	}
	return command.Table(w, []string{"NAME", "FIELDS", "TICK", "EPOCH", "ENDS", "IDS/S PER NODE", "NODES"}, rows)
}

func isOver(l snowflake.Layout) bool { return !time.Now().Before(l.End()) }

// widths returns the widths of the three fields, high bits first.
func widths(l snowflake.Layout) string {
	if l.Order == snowflake.TimeSequenceNode {
		return fmt.Sprintf("time %d, sequence %d, node %d", l.TimeBits, l.SequenceBits, l.NodeBits)
	}
	return fmt.Sprintf("time %d, node %d, sequence %d", l.TimeBits, l.NodeBits, l.SequenceBits)
}

// describe writes the bits and the figures of a layout, and the rows of more.
func describe(w io.Writer, l snowflake.Layout, more ...[]string) error {
	if l.Name != "" {
		fmt.Fprintf(w, "%s\n\n", l.Name)
	}
	capacity := l.Capacity()
	last := capacity.Last.Format(time.RFC3339Nano)
	if isOver(l) {
		last += " (over: it decodes old IDs, but needs another epoch to issue new ones)"
	}
	return command.Table(w, nil, append([][]string{
		{"fields", fmt.Sprintf("%s: %d of 63 bits", widths(l), usedBits(l))},
		{"bits", bits(l)},
		{"tick", l.Tick.String()},
		{"epoch", l.Epoch.UTC().Format(time.RFC3339Nano)},
		{"lifetime", command.Number(capacity.Years) + " years"},
		{"last instant", last},
		{"nodes", command.Number(capacity.Nodes)},
		{"IDs per node", fmt.Sprintf("%s per tick, %s per second", command.Number(capacity.IDsPerTick), command.Number(capacity.IDsPerSecond))},
		{"spec", l.String()},
	}, more...))
}

func usedBits(l snowflake.Layout) int { return l.TimeBits + l.NodeBits + l.SequenceBits }

// bits returns which of the 64 bits of an ID is what, high ones first. The first are the sign and what the layout leaves
// unused, which are always 0.
func bits(l snowflake.Layout) string {
	fields := append([]snowflake.Part{{Name: "0", Bits: 64 - usedBits(l)}, {Name: "time", Bits: l.TimeBits}}, l.Parts...)
	if len(l.Parts) == 0 {
		fields = append(fields, snowflake.Part{Name: "node", Bits: l.NodeBits})
	}
	sequence := len(fields)
	if l.Order == snowflake.TimeSequenceNode {
		sequence = 2
	}
	fields = slices.Insert(fields, sequence, snowflake.Part{Name: "sequence", Bits: l.SequenceBits})
	high, texts := 64, []string(nil)
	for _, f := range fields {
		if high -= f.Bits; f.Bits > 0 {
			texts = append(texts, fmt.Sprintf("%d-%d %s", high+f.Bits-1, high, f.Name))
		}
	}
	return strings.Join(texts, ", ")
}

const layoutSQLHelp = `Print SQL functions for the IDs of a layout: tickflake_time(id), its inverse
tickflake_min_id(instant), tickflake_node(id), tickflake_sequence(id), and one for
each named part of the node. Run the output in the database, once.

With --node N, also print tickflake_next() for PostgreSQL, the default of a column of
IDs. The database is then one more node, whose number 'tickflake lease reserve' keeps
for it; examples/databases says what it promises.

SQL counts time in microseconds, so a layout with a finer tick or epoch is refused.`

//go:embed layout_*.sql
var sqlFiles embed.FS

// dialects are the templates, layout_DIALECT.sql.
var dialects = template.Must(template.ParseFS(sqlFiles, "*"))

func newLayoutSQL(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql [NAME|SPEC]",
		Short: "Print SQL functions that read IDs, and one that issues them",
		Long:  layoutSQLHelp,
		Example: `  tickflake layout sql --dialect postgres | psql
  tickflake layout sql twitter --dialect mysql
  tickflake layout sql --node 1023`,
		Args: cobra.MaximumNArgs(1),
	}
	dialect := command.ChoiceFlag(cmd, "dialect", "write SQL in the `DIALECT`; mysql is for MariaDB too", "postgres", "mysql")
	node := int64(-1)
	command.Flag(cmd, "node", "let tickflake_next() use node number `N`, which only the database has", &node, atLeast("0", wholeNumber))
	cmd.Flags().SortFlags = false
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l := snowflake.Default()
		if len(args) > 0 {
			var err error
			if l, err = snowflake.ParseLayout(args[0]); err != nil {
				return cli.Usage(err)
			}
		}
		s, err := sqlOf(l)
		if err != nil {
			return cli.Usage(err)
		}
		if node >= 0 {
			if err := s.issue(l, node, *dialect); err != nil {
				return cli.Usage(fmt.Errorf("--node: %w", err))
			}
		}
		return dialects.ExecuteTemplate(c.Out, "layout_"+*dialect+".sql", s)
	}
	return cmd
}

// layoutSQL is what the templates say of a layout. Times are in microseconds, and as text in UTC.
type layoutSQL struct {
	Layout            string
	Epoch, End        string
	EpochMicros, Tick int64
	TimeShift         int
	Largest, Above    int64 // the layout's largest ID, and a number that no ID reaches
	Fields            []sqlField
	Next              *sqlNext // or nil
}

// sqlNext is what tickflake_next() knows beside that. A slot is a tick and a sequence number.
type sqlNext struct {
	Node, NodeBits              int64 // the number, and where it stands in an ID
	Until                       string
	LastSlot                    int64
	Lock                        int // the class of the advisory lock
	SequenceBits, SequenceShift int
	SequenceMask                int64
}

// sqlField is a number in an ID.
type sqlField struct {
	Name  string
	Shift int
	Mask  int64
}

const sqlTime = "2006-01-02 15:04:05.000000"

func sqlOf(l snowflake.Layout) (layoutSQL, error) {
	if l.Tick%time.Microsecond != 0 || l.Epoch.Nanosecond()%1000 != 0 {
		return layoutSQL{}, fmt.Errorf("a tick of %s from %s is finer than the microseconds of SQL: decode such IDs in Go",
			l.Tick, l.Epoch.UTC().Format(time.RFC3339Nano))
	}
	largest, err := l.Max(l.End().Add(-1))
	if err != nil {
		return layoutSQL{}, err
	}
	above := int64(largest)
	if above < math.MaxInt64 {
		above++
	}
	s := layoutSQL{
		Layout: l.String(), Epoch: l.Epoch.UTC().Format(sqlTime), End: l.End().UTC().Format(sqlTime),
		EpochMicros: l.Epoch.UnixMicro(), Tick: l.Tick.Microseconds(), TimeShift: l.NodeBits + l.SequenceBits,
		Largest: int64(largest), Above: above,
	}
	nodeShift, sequenceShift := l.SequenceBits, 0
	if l.Order == snowflake.TimeSequenceNode {
		nodeShift, sequenceShift = 0, l.NodeBits
	}
	s.Fields = []sqlField{{"node", nodeShift, 1<<l.NodeBits - 1}, {"sequence", sequenceShift, 1<<l.SequenceBits - 1}}
	for _, p := range slices.Backward(l.Parts) {
		f := sqlField{strings.ReplaceAll(p.Name, "-", "_"), nodeShift, 1<<p.Bits - 1}
		if f.Name == "min_id" || slices.ContainsFunc(s.Fields, func(other sqlField) bool { return other.Name == f.Name }) {
			return layoutSQL{}, fmt.Errorf("part %s: there is another function tickflake_%s: give the part another name", p.Name, f.Name)
		}
		s.Fields = append(s.Fields, f)
		nodeShift += p.Bits
	}
	return s, nil
}

// issue adds the function that issues IDs of a node.
func (s *layoutSQL) issue(l snowflake.Layout, node int64, dialect string) error {
	if dialect != "postgres" {
		return fmt.Errorf("not on %s: a function there would hold a row until the caller commits; take IDs of 'tickflake serve'", dialect)
	}
	if _, err := l.Compose(l.Epoch, node, 0); err != nil {
		return err
	}
	shift, sequence := s.Fields[0].Shift, s.Fields[1]
	s.Next = &sqlNext{
		Node: node, NodeBits: node << shift, Until: l.End().UTC().Add(-l.Tick).Format(time.RFC3339), LastSlot: s.Largest>>s.TimeShift<<l.SequenceBits | sequence.Mask,
		Lock: 0x7469636b, SequenceBits: l.SequenceBits, SequenceShift: sequence.Shift, SequenceMask: sequence.Mask,
	}
	return nil
}
