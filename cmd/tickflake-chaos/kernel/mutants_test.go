package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tickflake/tickflake/chaos_test/mutants"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
	"github.com/tickflake/tickflake/generator"
)

// subjects returns the mutants of the table, and the sound generator, as subjects on the wall
// clock. Each promises what its users believed. Their tick is long, so that two visits of the
// clock to one instant meet in one tick, and as long as a step that is to catch them: the clock goes back
// by one tick then, and comes again to the last one, even on a host where ten IDs take a second.
func subjects() []subject.Subject {
	var all []subject.Subject
	for _, m := range mutants.All() {
		if catches[m.Name] == "" && m.Name != mutants.Control {
			continue
		}
		bound, tick := time.Duration(-1), 100*time.Millisecond
		if m.Kernel == "step-back-1s" {
			tick = time.Second
		}
		if m.Name == "M8" { // the others break another promise
			bound = m.Wait
		}
		all = append(all, subject.Subject{
			Name: m.Name, Group: Mutants, How: m.How, Restarts: true, Shares: m.Shares, Bound: bound,
			Open: func(_ context.Context, at subject.Place) (subject.Source, error) {
				next, err := m.Open(mutants.World{Now: time.Now, Sleep: time.Sleep, State: file(filepath.Join(at.Dir, "state")), Tick: tick, Bits: 16})
				if err != nil {
					return subject.Source{}, err
				}
				if m.Unlocked {
					next = inPairs(next)
				}
				return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
					id, err := next()
					return strconv.FormatInt(id, 10), 0, err
				}}, nil
			},
		})
	}
	return append(all, subject.Subject{
		Name: rejects, Group: Mutants, How: "generator.New, and an error to all calls from the first on that sees the clock behind",
		Steady: true, Bound: -1, Open: func(context.Context, subject.Place) (subject.Source, error) {
			gen, err := generator.New(generator.WithNode(8))
			var last time.Time
			var behind bool
			return subject.Source{Next: func(ctx context.Context) (string, time.Duration, error) {
				now := time.Now().Round(0)
				if behind, last = behind || now.Before(last), now; behind {
					return "", 0, errors.New("the clock went back")
				}
				id, err := gen.NextContext(ctx)
				return id.String(), 0, err
			}}, err
		},
	})
}

// rejects is a generator of ours that reads the wall clock, and does not promise to.
const rejects = "rejects after a step"

// inPairs has two callers at a time, for fifty IDs each.
func inPairs(next func() (int64, error)) func() (int64, error) {
	var ids []int64
	return func() (int64, error) {
		if len(ids) == 0 {
			var callers sync.WaitGroup
			ids = make([]int64, 100)
			for own := range slices.Chunk(ids, 50) {
				callers.Go(func() {
					for i := range own {
						own[i], _ = next()
					}
				})
			}
			callers.Wait()
		}
		id := ids[0]
		ids = ids[1:]
		return id, nil
	}
}

// file is a [mutants.File] with a path.
type file string

func (f file) Read() ([]byte, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return text, err
}

func (f file) Replace(data []byte) error {
	name := fmt.Sprintf("%s.%d", f, os.Getpid())
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return os.Rename(name, string(f))
}

func (f file) Truncate() error { return os.WriteFile(string(f), nil, 0o600) }

func (f file) Append(data []byte) error {
	to, err := os.OpenFile(string(f), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return errors.Join(err, to.Close())
}
