//go:build unix

package fleet

import (
	"context"

	"github.com/tickflake/tickflake/integration/program"
)

// Sizes are those of all servers.
func (f *Fleet) Sizes(ctx context.Context) (all []program.Size) {
	for _, m := range f.Members {
		all = append(all, m.Size(ctx))
	}
	return all
}

// Grown breaks a promise for each server that is more than [program.Most] larger than it was.
func (f *Fleet) Grown(ctx context.Context, start []program.Size) {
	for i, m := range f.Members {
		for _, how := range program.Beyond(start[i], m.Size(ctx), program.Most) {
			f.Break(Bounded, "server %d had %s", m.Index, how)
		}
	}
}
