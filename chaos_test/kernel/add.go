package kernel

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// Add adds a generator of the calling program to [Subjects], as one of the [Peers]. It must be
// called before [Main]: in the virtual machine the program is the same, and makes the same
// calls. open makes the generator in a process of its own; next returns an ID in decimal and
// the time in it. Of its IDs nothing is promised but that none comes twice in one process.
func Add(name, how string, open func() (next func() (id string, at time.Time, err error), err error)) {
	subject.Add(added(name, how, open))
}

func added(name, how string, open func() (func() (string, time.Time, error), error)) subject.Subject {
	s := subject.Subject{Name: name, Group: string(Peers), How: how, Numbers: true, Bound: -1}
	s.Open = func(context.Context, subject.Place) (subject.Source, error) {
		next, err := open()
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
			id, at, err := next()
			return id, max(time.Until(at.Round(0)), 0), err
		}}, err
	}
	return s
}
