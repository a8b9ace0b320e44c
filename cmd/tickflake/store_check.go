package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/stores"
)

func newStore(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check a store, whether it has node numbers or sequences",
		Long: `Check a store, whether it has node numbers or sequences.

` + storesHelp + "A directory there is checked as a whole.",
	}
	cmd.AddCommand(newStoreCheck(c))
	return cmd
}

const storeCheckHelp = `Ask the store's server which of its settings can lose acknowledged writes. After
such a loss, IDs and numbers are issued twice.

  forgets   when the server is killed and started again, or as it runs: tickflake
            refuses the store
  risks     in rarer events: loss of power, a failover
  unknown   the server does not say

A server of S3 is also probed: of several conditional writes at once, one must
succeed.

Each line names a setting and what to set. The exit code is 1 if the store forgets.`

func newStoreCheck(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a store can lose acknowledged writes",
		Long:  storeCheckHelp,
		Example: `  tickflake store check --store redis://10.0.0.1
  TICKFLAKE_STORE=postgres://ids:secret@db.example.com/ids tickflake store check`,
		Args: cobra.NoArgs,
	}
	place := placeFlags(cmd, keptCells, func() string { return "" })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		slog.SetDefault(slog.New(slog.DiscardHandler)) // stores.Open logs the same
		place.accepts = true
		probed := ""
		d, err := ask(ctx, place, func(ctx context.Context, store stores.Store) (stores.Durability, error) {
			d, err := stores.CheckDurability(ctx, store)
			if probe := store.Traits().Probe; err == nil && probe != nil {
				begin := time.Now()
				err = probe(ctx, true)
				probed = fmt.Sprintf("writes succeed and fail as promised, in %v", time.Since(begin).Round(time.Millisecond))
			}
			return d, err
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
				rows = append(rows, []string{part.word, command.Visible(sentence)})
			}
		}
		if probed != "" {
			rows = append(rows, []string{"probed", probed})
		}
		if err := command.Table(c.Out, nil, rows); err != nil {
			return err
		}
		switch {
		case len(d.Forgets) > 0:
			return command.ErrReported
		case len(d.Risks)+len(d.Unknown) == 0:
			_, err = fmt.Fprintf(c.Out, "%s: no setting is known to lose acknowledged writes\n", command.Visible(place.name()))
		}
		return err
	}
	return cmd
}
