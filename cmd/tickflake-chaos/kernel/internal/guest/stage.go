//go:build linux

package guest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// Stage is where a fault happens: the subjects are running when Run begins, and are
// stopped when it returns. Its methods are for the goroutine of Run.
type Stage struct {
	*carrier          // of all subjects
	second   *carrier // of beside

	Name  string     // of the fault
	Rand  *rand.Rand // from the seed of the run
	Kills int        // how often a fault that kills does so; 0: as often as it likes
	Dir   string     // on the disk; it has a directory for each subject
	Note  string     // for the row of clocks

	host    *host
	control *control
	begin   time.Time
	spawned atomic.Int64 // processes
	first   Reading      // of the clocks, before the fault
	causes  []string
}

// programPath is where the initramfs has the user's program.
const programPath = "/program"

// runFault runs one fault on its subjects, and sends the results.
func runFault(h *host, r Request) error {
	all := List()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == r.Run })
	if i < 0 {
		return errors.New("there is no such fault")
	}
	s := &Stage{Name: r.Run, Kills: r.Kills, Dir: filepath.Join(stateDir, r.Run), causes: all[i].Causes, host: h, control: h.control, begin: time.Now(),
		Rand: rand.New(rand.NewPCG(r.Seed, uint64(len(r.Run))))}
	s.carrier, s.second = &carrier{stage: s}, &carrier{stage: s}
	if err := s.perform(func(s *Stage) { s.addSubjects(r, all[i]) }); err != nil {
		return err
	}
	defer s.close()
	return s.run(all[i])
}

func (s *Stage) addSubjects(r Request, f Fault) {
	s.must(os.RemoveAll(s.Dir)) // the state of an earlier run
	var server string
	if f.Shared {
		server = s.Ask(Stores)
	}
	stood := func(from, to time.Duration) time.Duration {
		return s.control.stood(s.begin.Add(from), s.begin.Add(to))
	}
	for i, name := range r.Subjects {
		l := &record{stage: s, check: check.New(stood), place: subject.Place{Subject: name, Dir: filepath.Join(s.Dir, name), Window: f.Window, Timeout: f.Timeout, Busy: f.VMClock}}
		if server != "" {
			l.place.Store = fmt.Sprintf("%s&namespace=%s-%d", server, r.Run, i)
		}
		if name == Program {
			s.program = append([]string{programPath}, r.Args...)
		} else {
			of, ok := subject.Find(name)
			if !ok {
				s.must(fmt.Errorf("there is no subject %q", name))
			}
			l.other, l.shares = of.Group != subject.Ours || f.Behind && !of.Steady, of.Shares
			l.drifts = of.Steady && of.Leased
			l.place.Wait = f.Wait && l.drifts
		}
		s.must(os.MkdirAll(l.place.Dir, 0o755))
		s.records = append(s.records, l)
	}
	s.must(os.MkdirAll(s.Dir, 0o755))
}

func (s *Stage) run(f Fault) error {
	bootSource() // before a fault changes it
	if f.Before != nil {
		if err := f.Before(); err != nil {
			return err
		}
	}
	s.Progress("starts %d subjects", len(s.records))
	if len(s.records) > 0 {
		s.start()
	}
	err := s.perform(func(*Stage) {
		issue := s.ready()
		s.first = s.clocks()
		if issue {
			s.Progress("all subjects issue")
			f.Run(s)
			if f.Kind != Disks && s.program == nil { // a disk may fail to the end, and a program promises nothing
				s.goOn(0)
			}
		}
	})
	s.stop()
	s.second.stop()
	var after Reading
	err = errors.Join(err, s.perform(func(*Stage) {
		after = s.clocks()
		s.must(s.reset(after))
	}))
	if err != nil {
		return err
	}
	moved := func(to, from time.Duration) generatortest.Seconds { return generatortest.Seconds(to - from) }
	s.host.send(Message{Clock: &Clock{Fault: s.Name, Note: s.Note,
		Host: moved(after.Host, s.first.Host), Realtime: moved(after.Realtime, s.first.Realtime), Monotonic: moved(after.Monotonic, s.first.Monotonic),
		Boottime: moved(after.Boottime, s.first.Boottime)}})
	for _, l := range s.records {
		s.host.send(Message{Result: l.result()})
	}
	return nil
}

const (
	// startLimit is how long the first IDs of all subjects may take, on a busy host.
	startLimit = 2 * time.Minute
	// peerLimit is how long the first ID of another generator may take after those of ours:
	// one sleeps until its epoch, for decades.
	peerLimit = 3 * time.Second
)

// await waits until all subjects of ours are done, or all at all, but not for longer than the
// limit. It returns one that is late.
func (s *Stage) await(limit time.Duration, all bool, done func(*record) bool) (late *record) {
	deadline := time.Now().Add(limit)
	for _, l := range s.records {
		for (all || !l.other) && !l.is(done) {
			if time.Now().After(deadline) {
				return l
			}
			s.Issue(5 * time.Millisecond)
		}
	}
	return nil
}

// ready waits until each subject has issued an ID, or has failed. It reports false for a program of a
// user that does neither: that is its result under the fault, and no fault of the bench.
func (s *Stage) ready() bool {
	late := s.await(startLimit, false, issued)
	switch {
	case late == nil:
		s.await(peerLimit, true, issued)
	case s.program == nil:
		s.must(fmt.Errorf("%s has neither issued an ID nor failed within %v of its start", late.place.Subject, startLimit))
	default:
		number := s.number()
		late.do(func(now time.Duration) {
			late.add(now, check.ID{Err: fmt.Sprintf("it printed nothing within %v of its start", startLimit), Start: number})
		})
	}
	return late == nil
}

// close ends all that a stage has started.
func (s *Stage) close() {
	s.stop()
	s.second.stop()
	_ = unix.Kill(-1, unix.SIGKILL)                                    // orphans
	for err := error(nil); err == nil || errors.Is(err, unix.EINTR); { // until there is none
		_, err = unix.Wait4(-1, nil, 0, nil)
	}
	_ = os.RemoveAll(s.Dir)
}

// Mark notes that the fault happens now: Recovery is measured from here. The first of
// several marks counts.
func (s *Stage) Mark() { s.each(func(l *record, now time.Duration) { l.check.Mark(now) }) }

// each changes the records of all subjects.
func (s *Stage) each(change func(l *record, now time.Duration)) {
	for _, l := range s.records {
		l.do(func(now time.Duration) { change(l, now) })
	}
}

// now is CLOCK_MONOTONIC since the stage was made.
func (s *Stage) now() time.Duration { return time.Since(s.begin) }

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
func (s *Stage) Issue(d time.Duration) { time.Sleep(d) }

// settle notes that the clock is right again, once the subjects had a second to see it, or more on a busy host.
func (s *Stage) settle() {
	s.Issue(1500 * time.Millisecond)
	s.each(func(l *record, _ time.Duration) { l.check.Settled() })
	s.Issue(after)
}

// overLimit is how long a generator of ours may then take to issue again, on a busy host.
const overLimit = 30 * time.Second

// goOn lets the subjects issue for d, so that they use up what they had in stock. Then it waits until each
// generator of ours has issued again, or overLimit has passed.
func (s *Stage) goOn(d time.Duration) {
	s.Issue(d)
	s.each(func(l *record, _ time.Duration) { l.check.Over() })
	s.await(overLimit, false, func(l *record) bool { return !l.check.Verdict().Stuck })
}

// Beside starts a second process of the subjects that can share their state, beside the
// first. It runs until the end of the fault.
func (s *Stage) Beside() {
	for _, l := range s.records {
		if l.shares {
			s.second.records = append(s.second.records, l)
		}
	}
	if len(s.second.records) > 0 {
		s.must(s.second.prepare())
		s.second.start()
	}
}

// Restart kills all processes with SIGKILL, calls between, and starts them again.
func (s *Stage) Restart(between func() error) {
	s.must(s.prepare())
	s.kill()
	if between != nil {
		s.must(between())
	}
	s.start()
}

// Hold lets all subjects finish their calls, and waits until they hold: they issue
// nothing before Release. A program of a user is stopped by a signal.
func (s *Stage) Hold() {
	if s.program != nil {
		s.signal(syscall.SIGSTOP)
		for lines, quiet := -1, 0; quiet < 5; quiet++ { // until all that it had printed is read
			if !s.records[0].is(func(l *record) (same bool) { lines, same = l.lines, l.lines == lines; return same }) {
				quiet = 0
			}
			s.Issue(20 * time.Millisecond)
		}
		return
	}
	if !s.command(subject.Hold) {
		return // it has no process
	}
	if late := s.await(startLimit, true, holds); late != nil {
		s.must(fmt.Errorf("%s does not hold: a call takes longer than %v", late.place.Subject, startLimit))
	}
}

// Release ends a hold. If restored is set, the subjects are told that their memory was restored.
func (s *Stage) Release(restored bool) {
	number := s.number()
	s.each(func(l *record, now time.Duration) { // to wait is no call
		l.check.Made(now, number)
		l.held = false
	})
	switch {
	case s.program != nil:
		s.signal(syscall.SIGCONT)
	case restored:
		s.command(subject.Restored)
	default:
		s.command(subject.Go)
	}
}

// Ask tells the host to do something to the machine, and waits for the answer.
func (s *Stage) Ask(what string) string {
	s.host.send(Message{Ask: what})
	var r Request
	s.must(s.host.in.Decode(&r))
	if r.Error != "" {
		s.must(fmt.Errorf("ask the host for %q: %s", what, r.Error))
	}
	return r.Answer
}

// Progress sends a line for a person.
func (s *Stage) Progress(format string, args ...any) {
	s.host.send(Message{Progress: fmt.Sprintf(format, args...)})
}

// hostTime asks for the clock of the host.
func (s *Stage) hostTime() time.Duration {
	n, err := strconv.ParseInt(s.Ask("time"), 10, 64)
	s.must(err)
	return time.Duration(n)
}
