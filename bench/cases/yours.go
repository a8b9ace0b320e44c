package cases

import (
	"context"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
)

// Yours are the generators that a reader added.
func Yours() []Case {
	var all []Case
	for _, g := range yours.List() {
		limit := Limit{IDs: int(g.PerTick), Per: g.Tick}
		all = append(all, Case{Name: g.Name, Group: results.Peers, Bits: 64, Limit: limit, Open: func(context.Context) (Source, error) {
			next, err := g.New(yours.System{})
			return Source{Loop: func() Loop {
				return func(n int) error {
					for range n {
						if _, err := next(); err != nil {
							return err
						}
					}
					return nil
				}
			}}, err
		}})
	}
	return all
}
