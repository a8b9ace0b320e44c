package migrate

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
)

// Reserve leaves a node number to the old generators: no process that claims it in this
// store is granted any time before until. Call it for each number that they use, before
// the first new process starts.
func Reserve(ctx context.Context, store lease.Store, layout generator.Layout, node int64, until time.Time) error {
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout),
		lease.WithNode(lease.NodeNumber(node)), lease.WithClock(standing(until)))
	if err != nil {
		return err
	}
	return keeper.Close() // nothing was issued, so the grant is given back to where it began
}

// standing is a clock that stands still.
type standing time.Time

func (s standing) Now() time.Time { return time.Time(s) }
