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
