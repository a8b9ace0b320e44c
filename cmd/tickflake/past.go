package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

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

func (g *giving) numbers(layout snowflake.Layout) (lease.Past, error) {
	from, to, err := nodesOf(g.nodes, layout)
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
		p, err := g.numbers(f.Layout)
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
