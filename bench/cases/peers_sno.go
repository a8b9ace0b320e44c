//go:build linux || darwin || (windows && amd64)

package cases

import (
	"time"

	"github.com/muyo/sno"
)

// Sno calls sno.New of muyo/sno. Elsewhere than here it cannot be linked, since it names
// a function that Go's runtime has only here.
func Sno() []Case {
	c := global("muyo/sno", 80, func(n int) error {
		for range n {
			sno.New(0)
		}
		return nil
	}, func() (ID, error) {
		id := sno.New(0)
		return idOf(id[:]), nil
	})
	c.Limit = Limit{IDs: sno.MaxSequence + 1, Per: sno.TimeUnit * time.Nanosecond}
	return []Case{c}
}
