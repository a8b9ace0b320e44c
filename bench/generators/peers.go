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

// Others are the other generators; with names, those of them.
func Others(names ...string) (all []Case) {
	add := func(c Case) {
		if c.Group = report.Peers; len(names) == 0 || slices.Contains(names, c.Name) {
			all = append(all, c)
		}
	}
	for _, p := range peers.List() {
		var limit Limit
		if p.Full == peers.Waits {
			limit = Limit{IDs: int(p.PerTick), Per: p.Tick}
		}
		add(Case{Name: p.Name, Limit: limit, Open: func(context.Context) (Source, error) {
			g, err := p.New(peers.System)
			return shared(g.Loop, err)
		}})
		if p.Name == Bwmarrin {
			add(Case{Name: BwmarrinWide, Limit: Limit{IDs: 1 << 22, Per: time.Millisecond},
				Note: "snowflake.NodeBits = 0 and StepBits = 22, so there is one node only", Open: openWide})
		}
	}
	return all
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
	return shared(loop(func() (snowflake.ID, error) { return made.Generate(), nil }), nil)
}
