package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
)

// bootLimit is how long a boot may take, on a host that does other work too.
const bootLimit = time.Minute

// bootTries is how often a machine is booted that hangs before its process 1 is up, as the
// emulation of two processors does rarely. No subject has run by then.
const bootTries = 2

var errHangs = errors.New("the machine hangs, and was ended")

// stateSize is the disk of the subjects, which is sparse.
const stateSize = 256 << 20

// ask is something that a guest asks for; arg is the text after the verb.
type ask func(ctx context.Context, s *session, arg string) (answer string, err error)

// asks has what a host does for a guest, by verb.
var asks = map[string]ask{
	"time": func(context.Context, *session, string) (string, error) {
		return strconv.FormatInt(time.Now().UnixNano(), 10), nil
	},
}

// session is a machine that is up, and the conversation with its process 1.
type session struct {
	b     *bench
	m     *machine.Machine
	ready guest.Ready
	asks  map[string]ask // further ones, or instead of those of the table
	log   *os.File
	disk  string

	fault    guest.Fault // the one that runs
	deadline time.Time   // for it
	twin     *twin       // that runs beside it

	waking sync.WaitGroup // see wake
}

// config is the machine that a fault needs.
func (b *bench) config(f guest.Fault) machine.Config {
	return machine.Config{NoRTC: f.NoRTC, Modules: f.Modules, Network: f.Network}
}

// boot starts a machine, with a fresh state disk before the disks of c, and waits until
// process 1 is up. fault is for the progress.
func (b *bench) boot(ctx context.Context, fault string, c machine.Config) (s *session, err error) {
	for try := 1; ; try++ {
		s, err = b.bootOnce(ctx, fault, c)
		if !errors.Is(err, errHangs) || try == bootTries {
			return s, err
		}
		b.progress(fault, err.Error())
	}
}

func (b *bench) bootOnce(ctx context.Context, fault string, c machine.Config) (s *session, err error) {
	b.mu.Lock()
	b.machines++
	n := b.machines
	b.mu.Unlock()
	b.progress(fault, "boots a machine")
	s = &session{b: b, disk: filepath.Join(b.dir, fmt.Sprintf("state-%d.img", n))}
	begun := s // a return of nil sets s before the deferred call
	defer func() {
		if err != nil {
			begun.close()
		}
	}()
	c.Kernel = b.o.Kernel
	if c.Saved == "" {
		if err := format(ctx, s.disk, "ext4", stateSize); err != nil {
			return nil, err
		}
		c.Disks = append([]machine.Disk{{Image: s.disk}}, c.Disks...)
	}
	c.Program = b.o.Program
	if b.o.Log != "" {
		if s.log, err = os.Create(filepath.Join(b.o.Log, fmt.Sprintf("machine-%d.log", n))); err != nil {
			return nil, err
		}
		c.Log = s.log
	}
	if s.m, err = machine.Boot(ctx, c); errors.Is(err, machine.ErrNoModule) {
		return nil, errSkip(err.Error())
	} else if err != nil {
		return nil, fmt.Errorf("boot a machine: %w", err)
	}
	if c.Saved != "" {
		return s, nil
	}
	m, err := s.next(ctx, time.Now().Add(bootLimit))
	if err != nil {
		return nil, fmt.Errorf("boot a machine: %w", err)
	}
	if m.Ready == nil {
		return nil, fmt.Errorf("boot a machine: process 1 says: %s", m.Failed)
	}
	s.ready = *m.Ready
	return s, nil
}

// format makes a file system in a sparse file.
func format(ctx context.Context, path, kind string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	tool := "mkfs." + kind
	for _, dir := range []string{"/usr/sbin", "/sbin"} { // not in the PATH of each user
		if p := filepath.Join(dir, tool); exists(p) {
			tool = p
		}
	}
	args := []string{"-q", path}
	if kind == "ext4" {
		args = []string{"-q", "-F", path}
	}
	if out, err := exec.CommandContext(ctx, tool, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make a file system %s (Debian: e2fsprogs, xfsprogs, btrfs-progs): %w: %s", kind, err, out)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// close ends the machine.
func (s *session) close() {
	if s.m != nil {
		_ = s.m.Kill()
	}
	s.waking.Wait()
	if s.log != nil {
		_ = s.log.Close()
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

// next returns the next message.
func (s *session) next(ctx context.Context, deadline time.Time) (m guest.Message, err error) {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return m, ctx.Err()
		case <-t.C:
			state := s.m.State()
			_ = s.m.Kill()
			return m, fmt.Errorf("%w; its processors and the last lines of its kernel were:\n%s", errHangs, state)
		case line, ok := <-s.m.Lines():
			if !ok {
				return m, errors.Join(errors.New("the machine has ended"), s.m.Wait())
			}
			if len(line) == 0 || line[0] != '{' {
				continue // noise of a boot
			}
			if err := json.Unmarshal(line, &m); err != nil {
				return m, fmt.Errorf("a message of the guest is damaged: %w: %.200q", err, line)
			}
			return m, nil
		}
	}
}

// run runs one fault, and answers what it asks for, until it has ended. limit 0 is
// guest.DefaultLimit.
func (s *session) run(ctx context.Context, r guest.Request, limit time.Duration) (out outcome, err error) {
	if limit == 0 {
		limit = guest.DefaultLimit
	}
	s.b.progress(r.Run, "begins")
	if err := s.send(r); err != nil {
		return out, err
	}
	s.deadline = time.Now().Add(limit)
	out, err = s.follow(ctx, r.Run, s.deadline)
	return s.join(out, err)
}

// follow reads messages until the fault has ended.
func (s *session) follow(ctx context.Context, fault string, deadline time.Time) (out outcome, err error) {
	out.kernel = s.ready.Kernel
	for {
		m, err := s.next(ctx, deadline)
		if err != nil {
			return out, err
		}
		switch {
		case m.Progress != "":
			s.b.progress(fault, m.Progress)
		case m.Ask != "":
			if err := s.answer(ctx, m.Ask); err != nil {
				return out, err
			}
		case m.Ack != nil:
			out.acks = append(out.acks, m.Ack)
		case m.Clock != nil:
			out.clock = m.Clock
		case m.Finding != nil:
			out.rows = append(out.rows, Row{Fault: fault, Subject: m.Finding.Subject, Group: Ours, Broken: m.Finding.Broken, Note: m.Finding.Note, Verdict: Verdict{IDs: m.Finding.IDs}})
		case m.Result != nil:
			out.add(*m.Result)
		case m.Failed != "":
			return out, errors.New(m.Failed)
		case m.Done != "":
			s.b.progress(fault, "is done")
			return out, nil
		}
	}
}

// answer does what the guest asks for.
func (s *session) answer(ctx context.Context, question string) error {
	verb, arg, _ := strings.Cut(question, " ")
	do := asks[verb]
	if own := s.asks[verb]; own != nil {
		do = own
	}
	var a guest.Answer
	if do == nil {
		a.Error = "the host cannot do that"
	} else if text, err := do(ctx, s, arg); err != nil {
		a.Error = err.Error()
	} else {
		a.Text = text
	}
	return s.send(guest.Request{Answer: &a})
}

func (b *bench) progress(fault, text string) {
	if b.o.Progress != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.o.Progress(fault, text)
	}
}
