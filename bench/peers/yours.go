package peers

import (
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// added are the generators that a reader added. They are held to nothing but that no ID comes
// twice; what else a fault does to them is shown as its price.
func added() []Peer {
	anything := generatortest.Bound{Wait: generatortest.Forever, Borrow: generatortest.Forever}
	var all []Peer
	for _, g := range yours.List() {
		all = append(all, peer(Peer{
			Name: g.Name, Driven: ByClock, How: "yours.Clock", Claim: "no ID twice", low: lowest, restarts: true, Integers: true,
		}, generatortest.Subject[int64]{
			Claim: generatortest.Claim{Exhausted: anything, Behind: anything, Unordered: true},
			Tick:  g.Tick, Time: g.Time, Epoch: g.Epoch,
			New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
				next, err := g.New(clock)
				return generatortest.Process[int64]{Next: next}, err
			},
		}))
	}
	return all
}
