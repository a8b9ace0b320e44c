package realkernel

import (
	"strconv"
	"time"

	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// AddYours makes the generators that a reader added meet the faults. It must be called before
// kernel.Main, also in the machine, where the program is the same.
func AddYours() {
	for _, g := range yours.List() {
		kernel.Add(g.Name, "yours.Generator", func() (func() (string, time.Time, error), error) {
			next, err := g.New(yours.System{})
			return func() (string, time.Time, error) {
				id, err := next()
				return strconv.FormatInt(id, 10), g.Time(id), err
			}, err
		})
	}
}
