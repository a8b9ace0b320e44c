//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
	"golang.org/x/sys/unix"
)

// Stage is where a fault happens: the subjects are running when Run begins, and are
// stopped when it returns. Its methods are for the goroutine of Run.
type Stage struct {
	Name  string     // of the fault
	Rand  *rand.Rand // from the seed of the run
	Kills int        // how often a fault that kills does so; 0: as often as it likes
	Dir   string     // on the disk; it has a directory for each subject
	Note  string     // for the row of clocks

	ctx     context.Context
	cancel  context.CancelFunc
	link    *link
	begin   time.Time
	ledgers []*ledger // one per subject
	carrier *carrier
	second  *carrier     // of Beside
	spawned atomic.Int64 // processes
	control *control
	sampler *sampler
	first   Reading // of the clocks, by measure
	causes  []string
	alone   bool // this is process 1: what is left of a fault is killed

	stopped time.Duration // when the subjects were, by SIGSTOP; 0: they are not
}

// programPath is where the initramfs has the user's program.
var programPath = "/program"

func newStage(ctx context.Context, l *link, r Request, f Fault, dir string, alone bool) (*Stage, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("empty the state of an earlier run: %w", err)
	}
	s := &Stage{
		Name: r.Run, Kills: r.Kills, Dir: dir, alone: alone, causes: f.Causes, link: l, begin: time.Now(),
		Rand: rand.New(rand.NewPCG(r.Seed, uint64(len(r.Run)))),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	var server string
	if f.Shared {
		var err error
		if server, err = s.Ask(Stores); err != nil {
			return nil, err
		}
	}
	s.carrier = &carrier{stage: s}
	for i, name := range r.Subjects {
		l := &ledger{stage: s, place: subject.Place{Subject: name, Dir: filepath.Join(dir, name), Window: f.Window}}
		if server != "" {
			l.place.Store = fmt.Sprintf("%s?namespace=%s-%d", server, r.Run, i)
		}
		if name == Program {
			s.carrier.argv, l.check = append([]string{programPath}, r.Args...), check.New(check.Auto)
		} else {
			sub, ok := subject.Find(name)
			if !ok {
				return nil, fmt.Errorf("there is no subject %q", name)
			}
			order := check.Text
			if sub.Numbers {
				order = check.Numbers
			}
			l.check, l.other, l.shares = check.New(order), sub.Group != subject.Tickflake, sub.Shares
		}
		if err := os.MkdirAll(l.place.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the state of %s: %w", name, err)
		}
		s.ledgers = append(s.ledgers, l)
	}
	s.carrier.ledgers = s.ledgers
	return s, nil
}

func (s *Stage) run(f Fault) error {
	bootSource() // before a fault changes it
	if f.Before != nil {
		if err := f.Before(); err != nil {
			return err
		}
	}
	s.Progress("starts %d subjects", len(s.ledgers))
	s.control = startControl()
	s.Start()
	err := s.ready()
	if err == nil {
		s.Progress("all subjects issue")
		if err = s.measure(); err == nil {
			err = s.perform(f.Run)
		}
	}
	s.stop()
	clock := Clock{Fault: s.Name, Note: s.Note}
	if s.sampler != nil {
		s.sampler.fill(&clock)
	}
	stall := s.control.stop()
	after, failed := s.clocks()
	if err = errors.Join(err, failed, s.reset(after)); err != nil {
		return err
	}
	clock.Host, clock.Realtime = after.Host-s.first.Host, after.Realtime-s.first.Realtime
	clock.Monotonic, clock.Boottime = after.Monotonic-s.first.Monotonic, after.Boottime-s.first.Boottime
	clock.Raw = after.Raw - s.first.Raw
	s.link.send(Message{Clock: &clock})
	for _, l := range s.ledgers {
		l.send(stall)
	}
	return nil
}

// measure begins to measure the clocks, again if a fault had to set them first.
func (s *Stage) measure() error {
	if s.sampler != nil {
		s.sampler.watch.stop()
	}
	var err error
	s.first, err = s.clocks()
	s.sampler = startSampler()
	return err
}

// startLimit is how long the first IDs of all subjects may take, on a busy host.
const startLimit = 2 * time.Minute

// peerLimit is how long the first ID of another generator may take after those of ours:
// one sleeps until its epoch, for decades.
const peerLimit = 3 * time.Second

// await waits until all subjects of ours are done, or all at all, but not for longer than the
// limit. It returns one that is late.
func (s *Stage) await(limit time.Duration, all bool, done func(*ledger) bool) (late *ledger, err error) {
	deadline := time.Now().Add(limit)
	for _, l := range s.ledgers {
		for (all || !l.other) && !done(l) {
			if time.Now().After(deadline) {
				return l, nil
			}
			if err := s.sleep(5 * time.Millisecond); err != nil {
				return l, err
			}
		}
	}
	return nil, nil
}

// ready waits until each subject has issued an ID, or has failed.
func (s *Stage) ready() error {
	late, err := s.await(startLimit, false, (*ledger).issued)
	if err == nil && late != nil {
		err = fmt.Errorf("%s has neither issued an ID nor failed within %v of its start", late.place.Subject, startLimit)
	}
	if err == nil {
		_, err = s.await(peerLimit, true, (*ledger).issued)
	}
	return err
}

// close ends all that a stage has started.
func (s *Stage) close() {
	s.cancel()
	s.stop()
	if s.alone {
		_ = unix.Kill(-1, unix.SIGKILL)                                    // orphans
		for err := error(nil); err == nil || errors.Is(err, unix.EINTR); { // until there is none
			_, err = unix.Wait4(-1, nil, 0, nil)
		}
	}
	_ = os.RemoveAll(s.Dir)
}

// Context ends when the run ends.
func (s *Stage) Context() context.Context { return s.ctx }

// Mark notes that the fault happens now: Recovery is measured from here. The first of
// several marks counts.
func (s *Stage) Mark() {
	for _, l := range s.ledgers {
		l.do(l.check.Mark)
	}
}

// now is CLOCK_MONOTONIC since the stage was made.
func (s *Stage) now() time.Duration { return time.Since(s.begin) }

func (s *Stage) sleep(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-t.C:
		return nil
	}
}

// failed is the panic of a fault that cannot go on.
type failed struct{ error }

// must ends the fault with an error, if there is one: a fault is a row of steps, without a
// word about what may go wrong.
func (s *Stage) must(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// perform runs the steps of a fault, up to the one that fails.
func (s *Stage) perform(run func(*Stage)) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failed:
			err = cause.error
		default:
			err = fmt.Errorf("the fault panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	run(s)
	return nil
}

// Issue lets the subjects issue for d, by CLOCK_MONOTONIC.
func (s *Stage) Issue(d time.Duration) { s.must(s.sleep(d)) }

// Prepare starts the process that the next Start runs, and waits until its subjects are
// about to make their generators. A start takes up to some seconds under emulation: a
// step of the clock by a second would be over before the generator reads the clock. A
// program of a user is not prepared.
func (s *Stage) Prepare() error { return s.carrier.prepare() }

// Start starts a process for the subjects, unless they have one.
func (s *Stage) Start() {
	if s.carrier.quit == nil {
		_ = s.carrier.prepare() // else it starts a process that does not wait, and tells the error
		s.carrier.start()
	}
}

// Beside starts a second process of the subjects that can share their state, beside the
// first. It runs until the end of the fault. Signals, Kill and Start are for the first.
func (s *Stage) Beside() error {
	s.second = &carrier{stage: s}
	for _, l := range s.ledgers {
		if l.shares {
			s.second.ledgers = append(s.second.ledgers, l)
		}
	}
	if len(s.second.ledgers) == 0 {
		return nil
	}
	err := s.second.prepare()
	if err == nil {
		s.second.start()
	}
	return err
}

// stop ends all processes.
func (s *Stage) stop() {
	for _, c := range []*carrier{s.carrier, s.second} {
		if c == nil {
			continue
		}
		c.kill()
		if c.next != nil {
			c.next.end()
			c.next = nil
		}
	}
}

// Restart kills all processes with SIGKILL, calls between, and starts them again.
func (s *Stage) Restart(between func() error) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	s.Kill()
	if between != nil {
		if err := between(); err != nil {
			return err
		}
	}
	s.Start()
	return nil
}

// Kill kills all processes of all subjects with SIGKILL. They are not started again
// before Start.
func (s *Stage) Kill() { s.carrier.kill() }

// Signal sends a signal to all processes. The time between SIGSTOP and SIGCONT is no
// stall of a subject.
func (s *Stage) Signal(n syscall.Signal) {
	now := s.now()
	switch {
	case n == syscall.SIGSTOP && s.stopped == 0:
		s.stopped = now
	case n == syscall.SIGCONT && s.stopped != 0:
		for _, l := range s.ledgers {
			l.do(func(time.Duration) { l.check.Stopped(s.stopped, now, s.carrier.number()) })
		}
		s.stopped = 0
	}
	s.carrier.signal(n)
}

// Hold lets all subjects finish their calls, and waits until they hold: they issue
// nothing before Release or Restored. A program of a user is stopped by a signal.
func (s *Stage) Hold() error {
	if s.carrier.argv != nil {
		s.carrier.signal(syscall.SIGSTOP)
		return s.drain(s.ledgers[0])
	}
	if !s.carrier.command(subject.Hold) {
		return nil // it has no process
	}
	late, err := s.await(startLimit, true, func(l *ledger) bool { return locked(l, func() bool { return l.held }) })
	if late != nil && err == nil {
		err = fmt.Errorf("%s does not hold: a call takes longer than %v", late.place.Subject, startLimit)
	}
	return err
}

// drain waits until all lines of a process that is stopped have been read.
func (s *Stage) drain(l *ledger) error {
	for lines, quiet := -1, 0; quiet < 5; quiet++ {
		if n := l.count(); n != lines {
			lines, quiet = n, 0
		}
		if err := s.sleep(round); err != nil {
			return err
		}
	}
	return nil
}

// Release ends a hold.
func (s *Stage) Release() { s.end(subject.Go) }

// Restored tells all subjects that their memory was restored. It ends a hold.
func (s *Stage) Restored() { s.end(subject.Restored) }

func (s *Stage) end(command string) {
	for _, l := range s.ledgers { // to wait is no call
		l.do(func(now time.Duration) {
			l.check.Idle(now, s.carrier.number())
			l.held = false
		})
	}
	if s.carrier.argv != nil {
		s.carrier.signal(syscall.SIGCONT)
	} else {
		s.carrier.command(command)
	}
}

// ask is Ask for a fault.
func (s *Stage) ask(what string) string {
	answer, err := s.Ask(what)
	s.must(err)
	return answer
}

// Ask tells the host to do something to the machine, and waits for the answer.
func (s *Stage) Ask(what string) (answer string, err error) {
	s.link.send(Message{Ask: what})
	select {
	case <-s.ctx.Done():
		return "", s.ctx.Err()
	case a := <-s.link.answers:
		if a.Error != "" {
			return "", fmt.Errorf("ask the host for %q: %s", what, a.Error)
		}
		return a.Text, nil
	}
}

// Progress sends a line for a person.
func (s *Stage) Progress(format string, args ...any) {
	s.link.send(Message{Progress: fmt.Sprintf(format, args...)})
}

// Ack sends a fact that must survive a power cut.
func (s *Stage) Ack(fact any) error {
	b, err := json.Marshal(fact)
	if err != nil {
		return err
	}
	s.link.send(Message{Ack: b})
	return nil
}

// hostTime asks for the clock of the host.
func (s *Stage) hostTime() (time.Duration, error) {
	answer, err := s.Ask("time")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(answer, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the host's time: %w", err)
	}
	return time.Duration(n), nil
}
