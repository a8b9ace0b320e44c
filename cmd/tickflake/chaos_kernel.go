package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/chaos_test/kernel"
)

const chaosKernelHelp = `--kernel runs the faults of 'tickflake chaos list --kernel' on a real Linux kernel,
in a virtual machine that needs no rights: clocks are really stepped, slewed and
suspended, processes killed, disks cut off. The generators are tickflake's and those
of other projects. Each table is one fault; the last one has all faults, by
generator. ✗ is a broken promise: one of another project does not change the exit
code. ! are duplicates that are documented. STALL is the longest call, less that of
an idle thread. JSON is one object; JUnit is one test suite per fault and one test
case per generator. Most faults take about 12 seconds, 4 of them for the boot, and
the longest about a minute; all take about 7 minutes on two processors.

It needs Linux on x86-64 and QEMU (apt-get install qemu-system-x86). The kernel is
that of $TICKFLAKE_KERNEL, of the user's cache directory or of this host; if there is
none, Debian's is downloaded into the cache directory with apt-get, which needs no
rights either.

--program tests a program of yours instead. It prints one ID per line, for as long
as it runs; it must be built for Linux on x86-64, and can be in any compiled
language: the machine has no shell. It is started, killed and started again as the
fault says, in a directory of its own. No ID may come twice. With --ordered,
the IDs of each process must ascend too: as numbers if they are, else as text.`

// kernelPlatform is the only platform with --kernel: the program itself is process 1 of the
// virtual machine.
const kernelPlatform = "linux/amd64"

// kernelVariable is the variable of the environment that names the directory of a kernel.
// A user who sets it wants no other kernel.
const kernelVariable = "TICKFLAKE_KERNEL"

// bench is package kernel. Tests replace it.
type bench struct {
	platform string
	find     func() (kernel.Kernel, error)
	fetch    func(ctx context.Context, said func(string)) (kernel.Kernel, error)
	run      func(context.Context, kernel.Options) (kernel.Report, error)
}

func realBench() bench {
	return bench{runtime.GOOS + "/" + runtime.GOARCH, kernel.Find, kernel.Fetch, kernel.Run}
}

// kernelFlags adds the flags of a run on a real kernel.
func (k *chaos) kernelFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&k.kernel, "kernel", false, "run on a real Linux kernel in a virtual machine")
	cmd.Flags().Func("subject", "only the `NAME`d generator of --kernel, or those of tickflake or peer; may be repeated (default all)", func(s string) error {
		k.subjects = append(k.subjects, s)
		return nil
	})
	if err := cmd.RegisterFlagCompletionFunc("subject", subjectCompletions); err != nil {
		panic(err) // no such flag
	}
	cmd.Flags().StringVar(&k.program, "program", "", "with --kernel, test the program at `PATH`, which prints one ID per line; its arguments stand after --")
	cmd.Flags().BoolVar(&k.ordered, "ordered", false, "with --program, the IDs of a process must ascend")
}

// arguments checks the flags and arguments that depend on each other.
func (k *chaos) arguments(cmd *cobra.Command, args []string) error {
	own := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own, k.args = args[:dash], args[dash:]
	}
	if err := cobra.NoArgs(cmd, own); err != nil {
		return err
	}
	given := func(names []string) (flags []string) {
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				flags = append(flags, "--"+name)
			}
		}
		return flags
	}
	switch {
	case k.kernel:
		if flags := given([]string{"strategy", "clock", "script", "no-lease"}); len(flags) > 0 {
			return fmt.Errorf("%s cannot be used with --kernel: its generators have their own; --subject chooses some of 'tickflake chaos list --kernel'", strings.Join(flags, ", "))
		}
	default:
		if flags := given([]string{"subject", "program", "ordered"}); len(flags) > 0 {
			return fmt.Errorf("%s cannot be used without --kernel", strings.Join(flags, ", "))
		}
	}
	switch {
	case k.program != "" && len(k.subjects) > 0:
		return errors.New("--subject cannot be used with --program, which is the only subject")
	case k.program == "" && k.ordered:
		return errors.New("--ordered cannot be used without --program")
	case k.program == "" && cmd.Flags().Changed("program"):
		return errors.New("--program: want the path of a program")
	case k.program == "" && len(k.args) > 0:
		return fmt.Errorf("%q stands after --, but there is no --program that gets it", k.args[0])
	}
	return k.resolve()
}

// resolve replaces the names of --fault by those of the catalogue, or of the kernel's, and
// checks those of --subject.
func (k *chaos) resolve() error {
	for i, name := range k.faults {
		onKernel := knownKernelFault(name)
		fault, err := knownFault(name)
		switch {
		case k.kernel:
			fault, err = name, onKernel
		case err != nil && onKernel == nil:
			err = fmt.Errorf("%s is a fault of a real kernel: give --kernel", name)
		}
		if err != nil {
			return fmt.Errorf("--fault: %w", err)
		}
		k.faults[i] = fault
	}
	for _, name := range k.subjects {
		if !slices.ContainsFunc(kernel.Subjects(), func(s kernel.SubjectInfo) bool { return s.Name == name || string(s.Group) == name }) {
			return fmt.Errorf("--subject: no generator %q; 'tickflake chaos list --kernel' has the names", name)
		}
	}
	return nil
}

func knownKernelFault(name string) error {
	var similar []string
	for _, fault := range kernel.Faults() {
		if fault.Name == name {
			return nil
		}
		if strings.Contains(fault.Name, name) {
			similar = append(similar, fault.Name)
		}
	}
	if len(similar) > 0 && name != "" {
		return fmt.Errorf("no fault %q of a real kernel; %s are", name, strings.Join(similar, ", "))
	}
	return fmt.Errorf("no fault %q of a real kernel; 'tickflake chaos list --kernel' has the names", name)
}

func kernelFaultCompletions() (faults []cobra.Completion) {
	for _, fault := range kernel.Faults() {
		faults = append(faults, cobra.CompletionWithDesc(fault.Name, fault.About))
	}
	return faults
}

func subjectCompletions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := []cobra.Completion{
		cobra.CompletionWithDesc(string(kernel.Ours), "all generators of tickflake"),
		cobra.CompletionWithDesc(string(kernel.Peers), "all other generators"),
	}
	for _, s := range kernel.Subjects() {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.How))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// onKernel runs the faults on a real kernel.
func (k *chaos) onKernel(ctx context.Context) error {
	if k.bench.platform != kernelPlatform {
		return fmt.Errorf("--kernel runs on %s only, and this is %s: the program itself is process 1 of the virtual machine; without --kernel, chaos runs everywhere, in virtual time", kernelPlatform, k.bench.platform)
	}
	if k.program != "" {
		if err := checkProgram(k.program); err != nil {
			return fmt.Errorf("--program: %w", err)
		}
	}
	shown := kernelProgress(k.console)
	defer shown.end()
	report, err := k.onKernelFound(ctx, shown)
	shown.end()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && len(report.Rows) == 0 && len(report.Skipped) == 0 {
		return err
	}
	summary := summarize(report)
	if writeErr := k.writeKernel(report, summary); writeErr != nil {
		return writeErr
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; %d of %d faults done", err, len(summary.faults), k.chosenFaults())
	case summary.failed > 0:
		return errReported
	case len(k.faults) > 0 && len(report.Skipped) > 0: // it was asked for by its name
		return fmt.Errorf("%s was not run: %s", report.Skipped[0].Fault, report.Skipped[0].Why)
	}
	return nil
}

// onKernelFound finds the kernel or downloads it, and runs the faults on it.
func (k *chaos) onKernelFound(ctx context.Context, shown *spinner) (kernel.Report, error) {
	found, err := k.bench.find()
	if err != nil && os.Getenv(kernelVariable) == "" {
		found, err = k.bench.fetch(ctx, shown.show)
	}
	if err != nil {
		return kernel.Report{}, err
	}
	options := kernel.Options{
		Faults: k.faults, Kernel: found, Program: k.program, Args: k.args, Ordered: k.ordered,
		Progress: func(fault, text string) { shown.show(strings.TrimPrefix(fault+": "+text, ": ")) },
	}
	for _, s := range kernel.Subjects() {
		if slices.Contains(k.subjects, s.Name) || slices.Contains(k.subjects, string(s.Group)) {
			options.Subjects = append(options.Subjects, s.Name)
		}
	}
	return k.bench.run(ctx, options)
}

func (k *chaos) chosenFaults() int {
	if len(k.faults) > 0 {
		return len(k.faults)
	}
	return len(kernel.Faults())
}

// spinner is a line that says what is being done, if standard error is a terminal.
type spinner struct{ bar *progressbar.ProgressBar }

// spinnerWidth is the longest text of a spinner: a longer line would wrap.
const spinnerWidth = 66

func kernelProgress(c *console) *spinner {
	return &spinner{progressbar.NewOptions(-1, progressbar.OptionSetWriter(c.err), progressbar.OptionSetVisibility(isTerminal(c.err)),
		progressbar.OptionSpinnerType(14), progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionUseANSICodes(true))}
}

func (s *spinner) show(text string) {
	runes := []rune(visible(text))
	s.bar.Describe(string(runes[:min(len(runes), spinnerWidth)]))
}

func (s *spinner) end() { _ = s.bar.Finish() }
