package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/powercut"
)

// sleep waits for the time that a guest has asked for.
func sleep(ctx context.Context, arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// twin is a copy of a machine, which finishes the fault of its original.
type twin struct {
	s    *session
	err  error
	done chan struct{}
}

// rolled is how long a machine goes on before it goes back.
const rolled = 300 * time.Millisecond

// copy saves a machine with its disk, and lets a copy go on beside it, or in its place: then the original stands
// still meanwhile. The original goes on in any case: it must hear of an error. Of several copies, each ends
// before the answer.
func (s *session) copy(ctx context.Context, rollback bool) (err error) {
	defer func() { err = errors.Join(err, s.m.Resume()) }()
	memory := s.disk + ".memory"
	defer os.Remove(memory)
	if err := s.m.Save(memory); err != nil {
		return err
	}
	image := s.disk + ".copy"
	if err := powercut.Copy(ctx, s.disk, image); err != nil {
		return err
	}
	if rollback {
		if err := errors.Join(s.m.Resume(), sleep(ctx, rolled.String()), s.m.Pause()); err != nil {
			return errors.Join(err, os.Remove(image))
		}
	}
	config := s.b.config(s.fault)
	config.Saved, config.Disks = memory, []machine.Disk{{Image: image}}
	t := &twin{done: make(chan struct{})}
	if t.s, err = s.b.boot(ctx, s.fault.Name, config); err != nil {
		return errors.Join(err, os.Remove(image))
	}
	t.s.disk, t.s.kernel, t.s.fault, t.s.deadline = image, s.kernel, s.fault, s.deadline
	s.twins = append(s.twins, t)
	go func() {
		defer close(t.done)
		defer t.s.close()
		if t.err = t.s.send(guest.Request{Answer: guest.Copied}); t.err == nil {
			t.err = t.s.follow(ctx)
		}
	}()
	if !s.fault.VMClock {
		return nil
	}
	if !rollback {
		err = s.m.Resume()
	}
	<-t.done
	return errors.Join(err, t.err)
}

// join waits for the copies, and adds what they have shown. A machine that was not copied has
// nothing to add.
func (s *session) join(failed error) error {
	twins := s.twins
	s.twins = nil
	for _, t := range twins {
		if failed != nil {
			t.s.m.Kill()
		}
		<-t.done
		failed = errors.Join(failed, t.err)
	}
	if failed != nil || len(twins) == 0 {
		return failed
	}
	s.out.again = map[string]again{}
	for name, original := range s.out.results {
		var all again
		ids := original.IDs
		for _, t := range twins {
			copied, ok := t.s.out.results[name]
			if !ok {
				return fmt.Errorf("the copy sent no result of %s", name)
			}
			one := compare(ids, copied.IDs)
			all = again{all.ids + one.ids, max(all.span, one.span), all.idle || one.idle, all.copies + 1, all.seen}
			if one.ids > 0 {
				all.seen++
			}
			ids = append(ids, copied.IDs...) // nor do two copies issue the same
			original.Verdict = add(original.Verdict, copied.Verdict)
			original.Crashed, original.Stderr = cmp.Or(original.Crashed, copied.Crashed), original.Stderr+copied.Stderr
		}
		s.out.again[name] = all
		s.out.results[name] = original
	}
	return nil
}

// add returns what an original and its copy have shown together. The IDs before the copy
// count twice: both have counted them.
func add(a, b Verdict) Verdict {
	a.Error, a.Twice = cmp.Or(a.Error, b.Error), cmp.Or(a.Twice, b.Twice)
	a.Named, a.Stuck = a.Named || b.Named, a.Stuck || b.Stuck
	a.IDs += b.IDs
	a.Duplicates += b.Duplicates
	a.Again += b.Again
	a.Disorder += b.Disorder
	a.Failed += b.Failed
	a.Stall, a.Lead, a.Lag = max(a.Stall, b.Stall), max(a.Lead, b.Lead), max(a.Lag, b.Lag)
	if min(a.Recovery, b.Recovery) == check.Never {
		a.Recovery = check.Never
	} else {
		a.Recovery = max(a.Recovery, b.Recovery)
	}
	return a
}

// again is what an original and its copy have both issued after the snapshot.
type again struct {
	ids int
	// span is how far the last of them is behind the first ID after the snapshot, both as
	// integers. It is 0 if the IDs are no integers.
	span int64
	// idle says that one of the two issued nothing after the snapshot: nothing was compared.
	idle bool
	// copies is how many there were, and seen in how many of them an ID came twice.
	copies, seen int
}

// compare compares the IDs that an original and its copy issued after the snapshot.
func compare(original, copied []string) (a again) {
	if len(original) == 0 || len(copied) == 0 {
		return again{idle: true}
	}
	seen := check.Ledger{}
	for _, id := range original {
		seen.Add(id, check.Sight{})
	}
	number := func(id string) int64 { n, _ := strconv.ParseInt(id, 10, 64); return n }
	first := min(number(original[0]), number(copied[0]))
	for _, id := range copied {
		// A duplicate in the copy itself is in its verdict.
		if before, twice := seen.Add(id, check.Sight{By: 1}); twice && before.By == 0 {
			a.ids++
			a.span = max(a.span, number(id)-first)
		}
	}
	return a
}
