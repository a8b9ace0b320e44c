package realkernel

import (
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/chaos_test/kernel/peers"
)

// AddYours makes the generators that a reader added meet the faults. It must be called before
// kernel.Main, also in the machine, where the program is the same.
func AddYours() {
	for _, g := range yours.List() {
		peers.Add(peers.Integers(peers.Peer{
			Name: g.Name, How: "yours.Generator", Tick: g.Tick, PerTick: g.PerTick, Epoch: g.Epoch, Slot: g.Slot,
		}, func(clock peers.Clock) (func() (int64, error), error) { return g.New(clock) }))
	}
}
