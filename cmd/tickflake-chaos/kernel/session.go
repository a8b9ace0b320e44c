package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
)

// bootLimit is how long a boot may take: a few seconds, or minutes on a host that does other work.
const bootLimit = 4 * time.Minute

// bootTries is how often a machine is booted that is not fit for a fault: it hangs before its
// process 1 is up, as the emulation of two processors does rarely, or its clock runs too fast. No
// subject has run by then.
const bootTries = 3

var (
	errHangs = errors.New("the machine hangs, and was ended")
	// On a busy host a kernel may measure the rate of its clock wrongly, and keeps that.
	errFast = errors.New("the clock of the machine runs too fast")
)

// stateSize is the disk of the subjects, which is sparse.
const stateSize = 256 << 20

// session is a machine that is up, and the conversation with its process 1.
type session struct {
	b      *bench
	m      *machine.Machine
	kernel string // its name and version
	disk   string

	fault    guest.Fault // the one that runs
	deadline time.Time   // for it
	out      outcome     // of it
	twins    []*twin     // that run beside it, or have
}

// config is the machine that a fault needs.
func (b *bench) config(f guest.Fault) machine.Config {
	return machine.Config{NoRTC: f.NoRTC, VMClock: f.VMClock, Modules: f.Modules, Network: f.Network}
}

// boot starts a machine, with a fresh state disk before the disks of c, and waits until
// process 1 is up. fault is for the progress.
func (b *bench) boot(ctx context.Context, fault string, c machine.Config) (*session, error) {
	for try := 1; ; try++ {
		b.progress(fault, "boots a machine")
		s := &session{b: b, disk: filepath.Join(b.dir, fmt.Sprintf("state-%d.img", b.machines.Add(1)))}
		err := s.boot(ctx, c)
		if err == nil {
			return s, nil
		}
		s.close()
		if !errors.Is(err, errHangs) && !errors.Is(err, errFast) || try == bootTries {
			return nil, err
		}
		b.progress(fault, err.Error())
	}
}

func (s *session) boot(ctx context.Context, c machine.Config) (err error) {
	c.Kernel, c.Program = s.b.o.Kernel, s.b.o.Program
	switch {
	case c.VMClock && c.Program != "":
		return errSkip("a program does not tell which IDs it had returned before the copy")
	case c.VMClock:
		if c.Kernel, err = machine.FindVMClock(); err != nil {
			return errSkip(err.Error())
		}
	}
	if c.Saved == "" {
		if err := format(ctx, s.disk, "ext4", stateSize); err != nil {
			return err
		}
		c.Disks = append([]machine.Disk{{Image: s.disk}}, c.Disks...)
	}
	began := time.Now()
	if s.m, err = machine.Boot(ctx, c); errors.Is(err, machine.ErrNoModule) {
		return errSkip(err.Error())
	} else if err != nil {
		return fmt.Errorf("boot a machine: %w", err)
	}
	if c.Saved != "" {
		return nil
	}
	m, err := s.next(time.Now().Add(bootLimit))
	if err != nil {
		return fmt.Errorf("boot a machine: %w", err)
	}
	if s.kernel = m.Ready; s.kernel == "" {
		return fmt.Errorf("boot a machine: process 1 says: %s", m.Failed)
	}
	if took := time.Since(began); m.Uptime > took*11/10 {
		return fmt.Errorf("%w: it counts %v since its boot, which took %v", errFast, m.Uptime, took)
	}
	return nil
}

// format makes a file system in a sparse file.
func format(ctx context.Context, path, kind string, size int64) error {
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", `PATH=$PATH:/usr/sbin:/sbin; exec mkfs.$0 -q "$@"`, kind, path)
	if kind == "ext4" { // which asks, since it is no device
		cmd.Args = append(cmd.Args, "-F")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a file system %s (Debian: e2fsprogs, xfsprogs, btrfs-progs): %w: %s", kind, err, out)
	}
	return nil
}

// close ends the machine.
func (s *session) close() {
	if s.m != nil {
		s.m.Kill()
	}
	_ = os.Remove(s.disk)
}

// send sends a request.
func (s *session) send(r guest.Request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.m.Send(line)
}

// next returns the next message. A machine that sends none before the deadline is ended.
func (s *session) next(deadline time.Time) (m guest.Message, err error) {
	for {
		line, err := s.m.Next(deadline)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.m.Kill()
			return m, fmt.Errorf("%w; the last lines of its kernel were:\n%s", errHangs, s.m.Tail())
		case err != nil:
			return m, err
		case len(line) == 0 || line[0] != '{':
			continue // noise of a boot
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return m, fmt.Errorf("a message of the guest is damaged: %w: %.200q", err, line)
		}
		return m, nil
	}
}

// run runs one fault on all subjects, and answers what it asks for, until it has ended.
func (s *session) run(ctx context.Context, f guest.Fault) (outcome, error) {
	s.fault, s.out = f, outcome{}
	s.deadline = time.Now().Add(cmp.Or(f.Limit, guest.DefaultLimit))
	s.b.progress(f.Name, "begins")
	r := guest.Request{Run: f.Name, Args: s.b.o.Args, Seed: s.b.o.Seed, Kills: s.b.o.Kills}
	for _, sub := range s.b.subjects {
		if !f.Alone {
			r.Subjects = append(r.Subjects, sub.Name)
		}
	}
	err := s.send(r)
	if err == nil {
		err = s.join(s.follow(ctx))
	}
	return s.out, err
}

// follow reads messages until the fault has ended.
func (s *session) follow(ctx context.Context) error {
	s.out = outcome{kernel: s.kernel, results: map[string]guest.Result{}}
	for {
		m, err := s.next(s.deadline)
		if err != nil {
			return err
		}
		switch {
		case m.Progress != "":
			s.b.progress(s.fault.Name, m.Progress)
		case m.Ask != "":
			if err := s.answer(ctx, m.Ask); err != nil {
				return err
			}
		case m.Clock != nil:
			s.out.clock = m.Clock
		case m.Result != nil && s.fault.Alone:
			s.out.rows = append(s.out.rows, Row{Fault: s.fault.Name, Subject: m.Result.Subject, Group: Ours, Broken: m.Result.Broken, Note: m.Result.Note, Verdict: m.Result.Verdict})
		case m.Result != nil:
			s.out.results[m.Result.Subject] = *m.Result
		case m.Failed != "":
			return errors.New(m.Failed)
		case m.Done != "":
			s.b.progress(s.fault.Name, "is done")
			return nil
		}
	}
}

// answer does what the guest asks for.
func (s *session) answer(ctx context.Context, question string) (err error) {
	verb, arg, _ := strings.Cut(question, " ")
	var a guest.Request
	switch verb {
	case "time":
		a.Answer = strconv.FormatInt(time.Now().UnixNano(), 10)
	case "pause": // stops the processors
		if err = s.m.Pause(); err == nil {
			err = errors.Join(sleep(ctx, arg), s.m.Resume())
		}
	case "wake": // the guest suspends the machine after the answer
		return errors.Join(s.send(a), s.m.Suspended(), sleep(ctx, arg), s.m.Wake())
	case guest.Stores: // all that is asked for consents to a store that is gone with this program
		a.Answer = fmt.Sprintf("redis://10.0.2.2:%s/0?forgetful=allow", s.b.stores.Port())
	case guest.Copy, guest.Rollback:
		err = s.copy(ctx, verb == guest.Rollback)
	default:
		err = errors.New("the host cannot do that")
	}
	if err != nil {
		a.Error = err.Error()
	}
	return s.send(a)
}

func (b *bench) progress(fault, text string) {
	if b.o.Progress != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.o.Progress(fault, text)
	}
}

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
	if err := copyImage(ctx, s.disk, image); err != nil {
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
