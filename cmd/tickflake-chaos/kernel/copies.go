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

// copyMachine saves a machine with its disk, and lets a copy go on beside it. The original
// goes on in any case: it must hear of an error.
func (s *session) copy(ctx context.Context) (err error) {
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
	config := s.b.config(s.fault)
	config.Saved, config.Disks = memory, []machine.Disk{{Image: image}}
	t := &twin{done: make(chan struct{})}
	if t.s, err = s.b.boot(ctx, s.fault.Name, config); err != nil {
		return errors.Join(err, os.Remove(image))
	}
	t.s.disk, t.s.kernel, t.s.fault, t.s.deadline = image, s.kernel, s.fault, s.deadline
	s.twin = t
	go func() {
		defer close(t.done)
		defer t.s.close()
		if t.err = t.s.send(guest.Request{Answer: &guest.Answer{Text: guest.Copied}}); t.err == nil {
			t.err = t.s.follow(ctx)
		}
	}()
	return nil
}

// join waits for the copy, and adds what it has shown. A machine that was not copied has
// nothing to add.
func (s *session) join(failed error) error {
	if s.twin == nil {
		return failed
	}
	t := s.twin
	s.twin = nil
	if failed != nil {
		_ = t.s.m.Kill()
	}
	<-t.done
	if err := errors.Join(failed, t.err); err != nil {
		return err
	}
	s.out.again = map[string]again{}
	for name, original := range s.out.results {
		copied, ok := t.s.out.results[name]
		if !ok {
			return fmt.Errorf("the copy sent no result of %s", name)
		}
		s.out.again[name] = compare(original.IDs, copied.IDs)
		original.Verdict = add(original.Verdict, copied.Verdict)
		original.Crashed, original.Stderr = cmp.Or(original.Crashed, copied.Crashed), original.Stderr+copied.Stderr
		s.out.results[name] = original
	}
	return nil
}

// add returns what an original and its copy have shown together. The IDs before the copy
// count twice: both have counted them.
func add(a, b Verdict) Verdict {
	a.Error = cmp.Or(a.Error, b.Error)
	a.IDs += b.IDs
	a.Duplicates += b.Duplicates
	a.Again += b.Again
	a.Disorder += b.Disorder
	a.Failed += b.Failed
	a.Stall, a.Lead = max(a.Stall, b.Stall), max(a.Lead, b.Lead)
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
}

// compare compares the IDs that an original and its copy issued after the snapshot.
func compare(original, copied []string) (a again) {
	a.idle = len(original) == 0 || len(copied) == 0
	seen := make(map[string]bool, len(original))
	for _, id := range original {
		seen[id] = true
	}
	first, last := int64(0), int64(0)
	for _, ids := range [][]string{original, copied} {
		if len(ids) > 0 {
			if n, err := strconv.ParseInt(ids[0], 10, 64); err == nil && (first == 0 || n < first) {
				first = n
			}
		}
	}
	for _, id := range copied {
		if !seen[id] {
			continue
		}
		a.ids++
		seen[id] = false // a duplicate in the copy itself is in its verdict
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			last = max(last, n)
		}
	}
	a.span = max(0, last-first)
	return a
}
