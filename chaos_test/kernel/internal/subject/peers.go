package subject

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/peers"
)

// others returns the generators of other projects. Of those without a time in their IDs no
// fault of a clock can be seen.
func others() (all []Subject) {
	for _, p := range peers.List() {
		s := Subject{Name: p.Name, Group: "peer", How: p.How, Numbers: p.Integer, Ordered: p.Ordered, Restarts: p.Restarts, Bound: -1}
		switch {
		case p.Refused:
			s.Skipped = "the Go module proxy of the build refuses " + p.Module
		case p.Tick == 0:
			continue
		default:
			s.Open = func(context.Context, Place) (Source, error) {
				gen, err := p.New(peers.System)
				return Source{Next: func(context.Context) (string, time.Duration, error) {
					id, err := gen.Next()
					return id, max(p.Time(id).Sub(peers.System.Now()), 0), err
				}}, err
			}
		}
		all = append(all, s)
	}
	return all
}
