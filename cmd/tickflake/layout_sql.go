package main

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

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
