package generators

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/peers"
)

// Names of peers in targets and texts.
const (
	Bwmarrin     = "bwmarrin/snowflake"
	BwmarrinWide = "bwmarrin/snowflake, 22-bit sequence"
	Sonyflake    = "sony/sonyflake"
)

// Added reports whether a reader added the generator of the name.
func Added(name string) bool {
	return slices.ContainsFunc(peers.List(), func(p peers.Peer) bool { return p.Name == name && p.Module == "" })
}

// Others are the other generators; with names, those of them and those that a reader added.
func Others(names ...string) []Case {
	var all []Case
	for _, p := range peers.List() {
		var limit Limit
		if p.Full == peers.Waits {
			limit = Limit{IDs: int(p.PerTick), Per: p.Tick}
		}
		all = append(all, Case{Name: p.Name, Group: report.Peers, Bits: p.Bits, Limit: limit, Open: func(context.Context) (Source, error) {
			g, err := p.New(peers.System)
			return shared(g.Loop, err)
		}})
		if p.Name == Bwmarrin {
			all = append(all, Case{Name: BwmarrinWide, Group: report.Peers, Bits: 64, Limit: Limit{IDs: 1 << 22, Per: time.Millisecond},
				Note: "snowflake.NodeBits = 0 and StepBits = 22, so there is one node only", Open: openWide})
		}
	}
	return slices.DeleteFunc(all, func(c Case) bool { return len(names) > 0 && !slices.Contains(names, c.Name) && !Added(c.Name) })
}

// openWide opens a node with all 22 bits that NodeBits and StepBits share in the sequence. It
// restores the package's variables, also those that NewNode computes from them. Sections run one after the other,
// and none opens a node beside another.
func openWide(context.Context) (Source, error) {
	node, step := snowflake.NodeBits, snowflake.StepBits
	snowflake.NodeBits, snowflake.StepBits = 0, 22
	made, err := snowflake.NewNode(0)
	snowflake.NodeBits, snowflake.StepBits = node, step
	if _, restored := snowflake.NewNode(0); err != nil || restored != nil {
		return Source{}, errors.Join(err, restored)
	}
	return shared(calls(made.Generate), nil)
}
