package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/stores"
)

const leaseCheckHelp = `Ask the store's server which of its settings can lose acknowledged writes. After
such a loss, IDs are issued twice.

  forgets   when the server is killed and started again, or as it runs: tickflake
            refuses the store
  risks     in rarer events: loss of power, a failover
  unknown   the server does not say

Each line names a setting and what to set. The exit code is 1 if the store forgets.`

func newLeaseCheck(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a store can lose acknowledged writes",
		Long:  leaseCheckHelp,
		Example: `  tickflake lease check --store redis://10.0.0.1
  TICKFLAKE_STORE=postgres://ids:secret@db.example.com/ids tickflake lease check`,
		Args: noArgs,
	}
	l := newLeases(c, cmd)
	cmd.MarkFlagsMutuallyExclusive("layout", "store") // a store has one layout
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return l.check(cmd.Context()) }
	return cmd
}

func (l *leases) check(ctx context.Context) error {
	if err := l.mustExist(ctx); err != nil { // before the URL gets an option
		return err
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // stores.Open logs the same
	l.consent()
	var d stores.Durability
	err := l.with(ctx, func(ctx context.Context, store stores.Store) (err error) {
		d, err = stores.CheckDurability(ctx, store)
		return err
	})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, part := range []struct {
		word      string
		sentences []string
	}{{"forgets", d.Forgets}, {"risks", d.Risks}, {"unknown", d.Unknown}} {
		for _, sentence := range part.sentences {
			rows = append(rows, []string{fmt.Sprintf("%-7s", part.word), command.Visible(sentence)})
		}
	}
	if err := command.Table(l.Out, nil, rows); err != nil {
		return err
	}
	switch {
	case len(d.Forgets) > 0:
		return command.ErrReported
	case len(d.Risks)+len(d.Unknown) == 0:
		_, err = fmt.Fprintf(l.Out, "%s: no setting is known to lose acknowledged writes\n", command.Visible(l.name()))
	}
	return err
}
