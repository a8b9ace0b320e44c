package snowflake

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/strategies"
)

// Node issues IDs, to any number of goroutines. Make one with [NewNode] or [NewLeasedNode].
type Node struct{ gen *generator.Generator }

// patient waits without a limit, since Generate returns no error. For a clock that is behind the grant
// it borrows up to an hour: with a lease that is safe, and a service that starts again cannot pause.
func patient() generator.Option {
	return generator.WithStrategy(strategies.PerCause(strategies.Wait(), strategies.Chain(strategies.BorrowUpTo(time.Hour), strategies.Wait())))
}

// NewNode returns a node with a number of the caller's choice, 0 to 1023 unless [NodeBits] was changed,
// which every process that runs at the same time must have for itself. No state is kept: start a process
// again only with a clock later than its last ID. [NewLeasedNode] needs neither. Nodes of one number
// in one process never issue an ID twice. The error is a [*stores.OptionError].
func NewNode(node int64) (*Node, error) {
	gen, err := generator.New(generator.WithLayout(Layout()), generator.WithNode(node), patient())
	if err != nil {
		return nil, err
	}
	return &Node{gen}, nil
}

// NewLeasedNode returns a node whose number and time are granted by a store, so its IDs are unique across
// restarts and all processes that use the store, whatever the clocks do:
//
//	keeper, err := lease.Claim(ctx, store, lease.WithLayout(snowflake.Layout()))
//	node, err := snowflake.NewLeasedNode(keeper)
//	defer node.Close()
//
// If the clock is behind the grant after a restart, IDs begin where the grant does, at most an hour
// ahead of the clock. Further options go to the generator, such as [generator.WithFloor] with the
// largest ID of the original. The error is a [*stores.OptionError], such as for a lease of another
// layout than [Layout].
func NewLeasedNode(keeper *lease.Keeper, options ...generator.Option) (*Node, error) {
	gen, err := generator.New(append([]generator.Option{generator.WithLease(keeper), generator.WithLayout(Layout()), patient()}, options...)...)
	if err != nil {
		return nil, err
	}
	return &Node{gen}, nil
}

// Generate issues one ID. It waits while the present millisecond is full, while the lease has no
// grant because its store is away, and while the clock is more than an hour behind the grant.
// Callers that cannot wait so long use [Node.GenerateContext].
//
// It panics with an error when a wait does not help, since it has no error result and any returned
// number could be in use: after [Node.Close], after the end of the layout's time (2080 by default),
// when another process has claimed the node number of lease.WithNode, and when the grant has ended
// and the store refuses the process (stores.Permanent).
func (n *Node) Generate() ID {
	id, err := n.gen.Next()
	if err != nil {
		panic(fmt.Errorf("snowflake: no ID can be issued any more: %w", err))
	}
	return ID(id)
}

// GenerateContext issues one ID, or gives up when ctx ends. The errors are those of
// [generator.Generator.NextContext], and the ID is 0 then.
func (n *Node) GenerateContext(ctx context.Context) (ID, error) {
	id, err := n.gen.NextContext(ctx)
	return ID(id), err
}

// Generator returns the generator behind the node, with all its methods. Close the node, not it.
func (n *Node) Generator() *generator.Generator { return n.gen }

// Close releases the lease, if there is one, and [Node.Generate] panics from then on. The error is that of
// [generator.Generator.Close].
func (n *Node) Close() error { return n.gen.Close() }
