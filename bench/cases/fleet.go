package cases

import (
	"context"
	"errors"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// FleetSize is how many generators a [Fleet] has.
const FleetSize = 64

// Fleet calls Generator.Next of generators with node numbers of their own, one for
// each loop, up to [FleetSize] of them. Their layout has a sequence that no run
// exhausts, with 262,144 IDs per millisecond and node, and lasts for 17 years.
func Fleet() Case {
	layout := snowflake.Default()
	layout.TimeBits, layout.NodeBits, layout.SequenceBits = 39, 6, 18
	limit := limitOf(layout)
	limit.IDs *= FleetSize
	return Case{
		Name: "Next, a generator each", Group: results.Ours, Bits: 64, Limit: limit,
		Open: func(context.Context) (Source, error) {
			var fleet [FleetSize]*generator.Generator
			for node := range fleet {
				g, err := generator.New(generator.WithLayout(layout), generator.WithNode(int64(node)))
				if err != nil {
					return Source{}, err
				}
				fleet[node] = g
			}
			looping, issued := 0, 0
			return Source{
				Loop: func() Loop {
					looping++
					return loopNext(fleet[(looping-1)%FleetSize])
				},
				Issue: func() (ID, error) {
					issued++
					id, err := fleet[issued%FleetSize].Next()
					return idOfInt(uint64(id)), err
				},
				Close: func() error {
					var errs []error
					for _, g := range fleet {
						errs = append(errs, g.Close())
					}
					return errors.Join(errs...)
				},
			}, nil
		},
	}
}
