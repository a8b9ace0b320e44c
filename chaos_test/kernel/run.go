package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// outcome is what one fault has shown.
type outcome struct {
	results []guest.Result
	ids     map[string][]string // by subject, until its result comes
	rows    []Row               // of a fault that has subjects of its own
	again   map[string]again    // by subject, if the machine was copied
	clock   *guest.Clock
	acks    []json.RawMessage // facts that must survive a power cut
	kernel  string
}

// add adds a result, or the IDs that come before it: they are cut into several messages.
func (o *outcome) add(r guest.Result) {
	if len(r.IDs) == 0 {
		r.IDs = o.ids[r.Subject]
		o.results = append(o.results, r)
		return
	}
	if o.ids == nil {
		o.ids = map[string][]string{}
	}
	o.ids[r.Subject] = append(o.ids[r.Subject], r.IDs...)
}

// errSkip is the error of a fault that cannot be run here: its text is the reason.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// bench is one Run.
type bench struct {
	o        Options
	subjects []subject.Subject
	dir      string // for disks; it is removed at the end

	mu       sync.Mutex
	machines int // booted so far
	jobs     []*job

	stores redis
}

// job is one fault to run.
type job struct {
	fault guest.Fault
	out   outcome
	err   error // errNotRun until it has run
}

var errNotRun = errors.New("it was not run, since the run ended before")

// Run runs the faults. Its error says that some faults could not be run; broken promises
// are in the report, which has the other faults in any case.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if report.QEMU, err = machine.Version(ctx); err != nil {
		return report, err
	}
	if o.Kernel.Image == "" {
		if o.Kernel, err = machine.Find(); err != nil {
			return report, err
		}
	}
	b := &bench{o: o}
	if err := b.choose(); err != nil {
		return report, err
	}
	if b.dir, err = os.MkdirTemp("", "tickflake-kernel-"); err != nil {
		return report, err
	}
	defer os.RemoveAll(b.dir)
	defer b.stores.close()
	n := o.Parallel
	if n <= 0 {
		n = max(1, runtime.NumCPU()/2)
	}
	todo := &queue{jobs: slices.Clone(b.jobs)}
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() { b.work(ctx, todo) })
	}
	workers.Wait()
	err = b.report(&report)
	if ctx.Err() != nil { // it is the cause of the other errors
		err = fmt.Errorf("the run was ended: %w", context.Cause(ctx))
	}
	return report, err
}

// choose selects the faults and the subjects.
func (b *bench) choose() error {
	names := slices.Clone(b.o.Faults)
	for _, f := range guest.List() {
		if i := slices.Index(names, f.Name); i >= 0 {
			names = slices.Delete(names, i, i+1)
		} else if len(b.o.Faults) > 0 {
			continue
		}
		b.jobs = append(b.jobs, &job{fault: f, err: errNotRun})
	}
	if len(names) > 0 {
		return fmt.Errorf("there is no fault %q", names[0])
	}
	if b.o.Program != "" {
		path, err := filepath.Abs(b.o.Program)
		if err != nil {
			return err
		}
		b.o.Program = path
		b.subjects = []subject.Subject{{Name: guest.Program, Group: string(Program), Ordered: b.o.Ordered, Restarts: true, Bound: -1, How: path}}
		return nil
	}
	names = slices.Clone(b.o.Subjects)
	for _, s := range subject.All() {
		group := Group(s.Group)
		if i := slices.Index(names, s.Name); i >= 0 {
			names = slices.Delete(names, i, i+1)
		} else if len(b.o.Subjects) > 0 ||
			len(b.o.Groups) > 0 && !slices.Contains(b.o.Groups, group) || len(b.o.Groups) == 0 && group == Mutants {
			continue
		}
		b.subjects = append(b.subjects, s)
	}
	if len(names) > 0 {
		return fmt.Errorf("there is no subject %q", names[0])
	}
	if len(b.subjects) == 0 {
		return errors.New("no subject is chosen")
	}
	return nil
}

// queue has the faults that are still to run.
type queue struct {
	mu   sync.Mutex
	jobs []*job
}

// next takes a fault: one for the machine that is up, if there is one.
func (q *queue) next(up string) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return nil
	}
	i := max(0, slices.IndexFunc(q.jobs, func(j *job) bool { return up != "" && needs(j.fault) == up }))
	j := q.jobs[i]
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return j
}

// needs is the key of faults that can share a machine; "" of one that shares none.
func needs(f guest.Fault) string {
	if f.Own {
		return ""
	}
	return fmt.Sprint(f.NoRTC, f.Network, f.Modules)
}

// work runs faults on one machine after another until none is left.
func (b *bench) work(ctx context.Context, todo *queue) {
	var s *session
	var up string
	end := func() {
		if s != nil {
			s.close()
			s, up = nil, ""
		}
	}
	defer end()
	for ctx.Err() == nil {
		j := todo.next(up)
		if j == nil {
			return
		}
		if kind := j.fault.CutsPower; kind != "" {
			end() // no more machines than workers
			j.out, j.err = cutPower(ctx, b, j.fault, kind, false)
			continue
		}
		if j.fault.Shared && !haveRedis() {
			j.err = errNoRedis
			continue
		}
		if key := needs(j.fault); key == "" || key != up {
			end()
			if s, j.err = b.boot(ctx, j.fault.Name, b.config(j.fault)); errors.As(j.err, new(errSkip)) {
				continue
			} else if j.err != nil {
				return // the next boot would take as long, and fail as well
			}
			up = key
		}
		s.fault = j.fault
		j.out, j.err = s.run(ctx, b.request(j.fault), j.fault.Limit)
		if j.err != nil || up == "" {
			end()
		}
	}
}

// request starts a fault on all subjects.
func (b *bench) request(f guest.Fault) guest.Request {
	r := guest.Request{Run: f.Name, Args: b.o.Args, Seed: b.o.Seed, Kills: b.o.Kills}
	for _, s := range b.subjects {
		if s.Skipped == "" && !f.Alone {
			r.Subjects = append(r.Subjects, s.Name)
		}
	}
	return r
}

func (b *bench) report(r *Report) error {
	var failed []error
	for _, j := range b.jobs {
		var skip errSkip
		if errors.As(j.err, &skip) {
			r.Skipped = append(r.Skipped, Skip{j.fault.Name, skip.Error()})
			continue
		}
		if j.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", j.fault.Name, j.err))
			continue
		}
		if r.Kernel == "" {
			r.Kernel = j.out.kernel
		}
		r.Rows = append(r.Rows, j.out.rows...)
		if c := j.out.clock; c != nil && !j.fault.Alone {
			r.Clocks = append(r.Clocks, *c)
		}
		for _, s := range b.subjects {
			if s.Skipped != "" && len(j.out.rows) == 0 {
				r.Rows = append(r.Rows, Row{Fault: j.fault.Name, Subject: s.Name, Group: Group(s.Group), Skipped: s.Skipped})
				continue
			}
			i := slices.IndexFunc(j.out.results, func(r guest.Result) bool { return r.Subject == s.Name })
			if i < 0 {
				if len(j.out.rows) == 0 {
					failed = append(failed, fmt.Errorf("%s: the machine sent no result of %s", j.fault.Name, s.Name))
				}
				continue
			}
			result := j.out.results[i]
			row := Row{Fault: j.fault.Name, Subject: s.Name, Group: Group(s.Group), Verdict: result.Verdict}
			a := j.out.again[s.Name]
			alone := result.Verdict
			alone.Duplicates -= a.ids
			row.Broken, row.Known = judge(j.fault, s, alone)
			if row.Group == Ours && result.Crashed != "" {
				row.Broken = append(row.Broken, "its process ended by itself, with all generators in it: "+result.Crashed)
			}
			if broken, known := judgeCopy(j.fault, s, a, result.Stderr); broken != "" {
				row.Broken = append(row.Broken, broken)
			} else if known != "" {
				row.Known = known
			}
			if len(row.Broken) > 0 {
				row.Known = "" // it does not explain all
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return errors.Join(failed...)
}
