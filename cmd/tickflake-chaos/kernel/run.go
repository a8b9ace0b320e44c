package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
)

// outcome is what one fault has shown.
type outcome struct {
	results map[string]guest.Result // by subject
	rows    []Row                   // of a fault that has subjects of its own
	again   map[string]again        // by subject, if the machine was copied
	clock   *guest.Clock
	kernel  string
}

// errSkip is the error of a fault that cannot be run here: its text is the reason.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// bench is one Run.
type bench struct {
	o        Options
	subjects []subject.Subject
	dir      string // for disks; it is removed at the end

	mu       sync.Mutex   // of progress
	machines atomic.Int64 // booted so far, each with a name of its own
	jobs     []*job

	stores *miniredis.Miniredis // that machines share
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
	b := &bench{o: o}
	if b.o.Kernel.Image == "" {
		b.o.Kernel, err = machine.Find()
		if err != nil && o.Fetch && os.Getenv(machine.KernelVariable) == "" { // who sets it wants no other kernel
			b.progress("kernel", "downloads Debian's, about 30 MB")
			b.o.Kernel, err = machine.Fetch(ctx)
		}
		if err != nil {
			return report, err
		}
	}
	if err := b.choose(); err != nil {
		return report, err
	}
	if b.dir, err = os.MkdirTemp("", "tickflake-kernel-"); err != nil {
		return report, err
	}
	defer os.RemoveAll(b.dir)
	if b.stores, err = miniredis.Run(); err != nil {
		return report, err
	}
	defer b.stores.Close()
	// Those that can share a machine come one after the other.
	todo := make(chan *job, len(b.jobs))
	for _, j := range slices.SortedStableFunc(slices.Values(b.jobs), func(a, b *job) int { return cmp.Compare(needs(a.fault), needs(b.fault)) }) {
		todo <- j
	}
	close(todo)
	var workers sync.WaitGroup
	for range max(1, runtime.NumCPU()/2) { // a machine has two processors
		workers.Go(func() { b.work(ctx, todo) })
	}
	workers.Wait()
	err = b.report(&report)
	if ctx.Err() != nil { // it is the cause of the other errors
		err = fmt.Errorf("the run was ended: %w", context.Cause(ctx))
	}
	return report, err
}

// chosen returns the items that are named, or all that are wanted if no name is given.
func chosen[T any](what string, all []T, names []string, name func(T) string, wanted func(T) bool) ([]T, error) {
	for _, n := range names {
		if !slices.ContainsFunc(all, func(item T) bool { return name(item) == n }) {
			return nil, fmt.Errorf("there is no %s %q", what, n)
		}
	}
	return slices.DeleteFunc(all, func(item T) bool {
		return len(names) > 0 && !slices.Contains(names, name(item)) || len(names) == 0 && !wanted(item)
	}), nil
}

// choose selects the faults and the subjects.
func (b *bench) choose() error {
	faults, err := chosen("fault", guest.List(), b.o.Faults, func(f guest.Fault) string { return f.Name }, func(guest.Fault) bool { return true })
	for _, f := range faults {
		b.jobs = append(b.jobs, &job{fault: f, err: errNotRun})
	}
	if err != nil {
		return err
	}
	if b.o.Program != "" {
		b.o.Program, err = filepath.Abs(b.o.Program)
		b.subjects = []subject.Subject{{Name: guest.Program, Group: Program, Ordered: b.o.Ordered, Restarts: true, Bound: -1, How: b.o.Program}}
		return err
	}
	b.subjects, err = chosen("subject", subject.All(), b.o.Subjects, func(s subject.Subject) string { return s.Name }, func(s subject.Subject) bool { return s.Group != Mutants })
	return err
}

// needs is the key of faults that can share a machine; "" of one that shares none.
func needs(f guest.Fault) string {
	if f.Own {
		return ""
	}
	return fmt.Sprint(f.NoRTC, f.Network, f.VMClock, f.Modules)
}

// work runs faults on one machine after another until none is left.
func (b *bench) work(ctx context.Context, todo <-chan *job) {
	var s *session
	var up string // what the machine is fit for
	end := func() {
		if s != nil {
			s.close()
			s, up = nil, ""
		}
	}
	defer end()
	for j := range todo {
		if ctx.Err() != nil {
			return
		}
		if j.fault.CutsPower != "" {
			end() // no more machines than workers
			j.out, j.err = cutPower(ctx, b, j.fault, cuts, false)
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
		j.out, j.err = s.run(ctx, j.fault)
		if j.err != nil || up == "" {
			end()
		}
	}
}

// report makes the rows of all faults.
func (b *bench) report(r *Report) error {
	var failed []error
	for _, j := range b.jobs {
		var skip errSkip
		switch {
		case errors.As(j.err, &skip):
			r.Skipped = append(r.Skipped, Skip{j.fault.Name, skip.Error()})
			continue
		case j.err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", j.fault.Name, j.err))
			continue
		}
		r.Kernel = cmp.Or(r.Kernel, j.out.kernel)
		if r.Rows = append(r.Rows, j.out.rows...); len(j.out.rows) > 0 {
			continue
		}
		if j.out.clock != nil {
			r.Clocks = append(r.Clocks, *j.out.clock)
		}
		for _, s := range b.subjects {
			result, ok := j.out.results[s.Name]
			if !ok {
				failed = append(failed, fmt.Errorf("%s: the machine sent no result of %s", j.fault.Name, s.Name))
				continue
			}
			r.Rows = append(r.Rows, judged(j.fault, s, result, j.out.again[s.Name]))
		}
	}
	return errors.Join(failed...)
}
