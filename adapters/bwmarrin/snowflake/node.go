package snowflake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/strategies"
)

// Node issues IDs. Make one with [NewNode] or [NewLeasedNode]; it may be used by several
// goroutines at once.
type Node struct {
	gen    *generator.Generator
	leased bool
}

// maxLead is how far the IDs of a leased node may run ahead of a clock that was stepped
// back before it was made.
const maxLead = time.Hour

// patient waits without a limit, since Generate returns no error. For a clock that is
// behind the grant it borrows up to maxLead: with a lease that is safe, and a service that
// starts again after a crash cannot pause.
func patient() strategies.Strategy {
	return strategies.PerCause(strategies.Wait(),
		strategies.Chain(strategies.BorrowUpTo(maxLead), strategies.Wait()))
}

// byHand is the key of the generators of NewNode.
type byHand struct {
	epoch              int64
	nodeBits, stepBits uint8
	node               int64
}

var (
	sharedMu sync.Mutex
	shared   = map[byHand]*generator.Generator{}
)

// NewNode returns a node with a number of the caller's choice, 0 to 1023 unless
// [NodeBits] was changed. Give every process that runs at the same time its own
// number. Start a process again only with a clock later than its last ID: no state is kept.
// [NewLeasedNode] needs neither.
//
// All nodes of one number in the process share their sequence.
//
// The error is a [*stores.OptionError] for a number that is out of range, and for a
// layout with which no IDs can be issued now.
func NewNode(node int64) (*Node, error) {
	key := byHand{Epoch, NodeBits, StepBits, node}
	sharedMu.Lock()
	defer sharedMu.Unlock()
	gen := shared[key]
	if gen == nil {
		var err error
		gen, err = generator.New(generator.WithLayout(Layout()), generator.WithNode(node), generator.WithStrategy(patient()))
		if err != nil {
			return nil, err
		}
		shared[key] = gen
	}
	return &Node{gen: gen}, nil
}

// NewLeasedNode returns a node whose number and time are granted by a store, so its
// IDs are unique across restarts and all processes that use the store, whatever the clocks
// do:
//
//	keeper, err := lease.Claim(ctx, store, lease.WithLayout(snowflake.Layout()))
//	…
//	node, err := snowflake.NewLeasedNode(keeper)
//	…
//	defer node.Close()
//
// If the clock was stepped back before the process started again, so that it is behind
// the grant, IDs begin where the grant does, at most an hour ahead of the clock. Further options
// go to the generator, such as [generator.WithFloor] with the largest ID of the original.
//
// The error is a [*stores.OptionError], such as for a lease of another layout than
// [Layout].
func NewLeasedNode(keeper *lease.Keeper, options ...generator.Option) (*Node, error) {
	gen, err := generator.New(append([]generator.Option{generator.WithLease(keeper), generator.WithLayout(Layout()), generator.WithStrategy(patient())}, options...)...)
	if err != nil {
		return nil, err
	}
	return &Node{gen: gen, leased: true}, nil
}

// Generate issues one ID. It waits while the present millisecond is full; while the lease
// has no grant, which happens after an outage of its store of two thirds of the lease's
// window; and while the clock is more than an hour behind the grant. Callers that cannot
// wait so long use [Node.GenerateContext].
//
// It panics with an error when a wait does not help: after [Node.Close]; after the end of the
// layout's time, which is in the year 2080 by default; when the lease is lost for good, because
// another process claimed the node number that lease.WithNode asked for; and when the grant has
// ended and the error is of the kind stores.Refused, as after a change of the store's password,
// or a move of the fleet to another store. Generate has no error result, as in the original, and any returned number could be
// in use.
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

// Generator returns the generator behind the node: for its counts, for many IDs at once,
// and for IDs of type snowflake.ID. Do not close it; close the node.
func (n *Node) Generator() *generator.Generator { return n.gen }

// Close releases the lease and ends the node: [Node.Generate] panics from then on. The
// error is that of [generator.Generator.Close]. For a node without a lease Close does
// nothing, and the node can still be used.
func (n *Node) Close() error {
	if !n.leased {
		return nil
	}
	return n.gen.Close()
}
