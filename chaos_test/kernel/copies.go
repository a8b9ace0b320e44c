package kernel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/snowflake"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

func init() {
	asks["pause"], asks["wake"] = pause, wake
	asks[guest.Stores] = func(ctx context.Context, s *session, _ string) (string, error) { return s.b.stores.url(ctx, s.b.dir) }
	asks[guest.Copy] = copyMachine
}

// pause stops the processors for a time.
func pause(ctx context.Context, s *session, arg string) (string, error) {
	d, err := time.ParseDuration(arg)
	if err != nil {
		return "", err
	}
	if err := s.m.Pause(); err != nil {
		return "", err
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return "", errors.Join(ctx.Err(), s.m.Resume())
}

// wake wakes the machine when it has been suspended for a time. The guest suspends it after
// the answer.
func wake(_ context.Context, s *session, arg string) (string, error) {
	d, err := time.ParseDuration(arg)
	if err != nil {
		return "", err
	}
	s.waking.Go(func() { // ends with the machine
		if err := s.m.Wake(d); err != nil {
			s.b.progress(s.fault.Name, err.Error())
		}
	})
	return "", nil
}

// twin is a copy of a machine, which finishes the fault of its original.
type twin struct {
	s    *session
	out  outcome
	err  error
	done chan struct{}
}

// copyMachine saves a machine with its disk, and lets a copy go on beside it. The original
// goes on in any case: it must hear of an error.
func copyMachine(ctx context.Context, s *session, _ string) (_ string, err error) {
	defer func() { err = errors.Join(err, s.m.Resume()) }()
	memory := s.disk + ".memory"
	defer os.Remove(memory)
	if err := s.m.Save(memory); err != nil {
		return "", err
	}
	c := s.b.config(s.fault)
	c.Saved = memory
	c.Disks = []machine.Disk{{Image: s.disk + ".copy"}}
	if out, err := exec.CommandContext(ctx, "cp", "--sparse=always", s.disk, c.Disks[0].Image).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	t := &twin{done: make(chan struct{})}
	if t.s, err = s.b.boot(ctx, s.fault.Name, c); err != nil {
		return "", errors.Join(err, os.Remove(c.Disks[0].Image))
	}
	t.s.disk, t.s.ready, t.s.fault = c.Disks[0].Image, s.ready, s.fault
	s.twin = t
	go func() {
		defer close(t.done)
		defer t.s.close()
		if t.err = t.s.send(guest.Request{Answer: &guest.Answer{Text: guest.Copied}}); t.err == nil {
			t.out, t.err = t.s.follow(ctx, s.fault.Name, s.deadline)
		}
	}()
	return "", nil
}

// join waits for the copy, and adds what it has shown. A machine that was not copied has
// nothing to add.
func (s *session) join(out outcome, failed error) (outcome, error) {
	if s.twin == nil {
		return out, failed
	}
	t := s.twin
	s.twin = nil
	if failed != nil {
		_ = t.s.m.Kill()
	}
	<-t.done
	if err := errors.Join(failed, t.err); err != nil {
		return out, err
	}
	if out.clock != nil && len(out.acks) > 0 && len(t.out.acks) > 0 {
		out.clock.Note = "the original and the copy drew different random bytes first"
		if bytes.Equal(out.acks[0], t.out.acks[0]) {
			out.clock.Note = "the original and the copy drew the same random bytes first: the copy has the random state of the kernel, too"
		}
	}
	out.again = map[string]again{}
	for i, original := range out.results {
		at := slices.IndexFunc(t.out.results, func(r guest.Result) bool { return r.Subject == original.Subject })
		if at < 0 {
			return out, fmt.Errorf("the copy sent no result of %s", original.Subject)
		}
		copied := t.out.results[at]
		a := compare(original.IDs, copied.IDs)
		out.again[original.Subject] = a
		v := add(original.Verdict, copied.Verdict)
		v.Duplicates += a.ids
		out.results[i] = guest.Result{Subject: original.Subject, Verdict: v,
			Crashed: cmp.Or(original.Crashed, copied.Crashed), Stderr: original.Stderr + copied.Stderr}
	}
	return out, nil
}

// add returns what an original and its copy have shown together. The IDs before the copy
// count twice: both have counted them.
func add(a, b Verdict) Verdict {
	if a.Error == "" {
		a.Error = b.Error
	}
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

// The documented exceptions of a copy.
const (
	knownNoCall   = "it has no call for restored memory"
	knownFixed    = "a fixed node number without a store, which the copy has too"
	knownOneStore = "its store was copied with its memory, so nothing can notice"
)

// judgeCopy judges what an original and its copy have both issued: it returns the promise
// that was broken, or the documented exception.
func judgeCopy(f guest.Fault, s subject.Subject, a again, stderr string) (broken, known string) {
	twice := fmt.Sprintf("%d IDs came twice: ", a.ids)
	switch {
	case a.idle && Group(s.Group) == Ours:
		return "the original or the copy issued nothing after the snapshot", ""
	case a.ids == 0:
		return "", ""
	case Group(s.Group) != Ours:
		return "", twice + knownNoCall
	case !s.Restarts:
		return "", twice + knownFixed
	case !f.Shared:
		return "", twice + knownOneStore
	case f.Told:
		return twice + "the copy called Restored before", ""
	case s.Leased:
		layout := snowflake.Default()
		d := time.Duration(a.span>>(layout.NodeBits+layout.SequenceBits)) * layout.Tick
		text := fmt.Sprintf("%sthe last %v after the snapshot, in the rest of a window of %v", twice, d, f.Window)
		if d > f.Window || !strings.Contains(stderr, noticed) {
			return text + fmt.Sprintf("; the log says %q: %t", noticed, strings.Contains(stderr, noticed)), ""
		}
		return "", text
	case a.ids <= s.Reserve:
		return "", fmt.Sprintf("%sthe rest of its reserve of at most %d", twice, s.Reserve)
	}
	return fmt.Sprintf("%sits reserve is at most %d", twice, s.Reserve), ""
}

// noticed is in the log of a keeper that found a write of its copy.
const noticed = "lease: lost"
