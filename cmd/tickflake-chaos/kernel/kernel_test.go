package kernel

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/mutants"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
	"github.com/tickflake/tickflake/generator/generatortest"
)

var allFlag = flag.Bool("kernel.all", false, "run all faults, on as many machines as they need")

// needsMachine skips a test where no machine can be booted, unless CI says that it must be: then it downloads a kernel
// if there is none.
func needsMachine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short boots no machine")
	}
	if built, ok := debug.ReadBuildInfo(); ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector makes an emulated machine so slow that it starves")
	}
	required := os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != ""
	_, err := machine.Version(t.Context())
	if err == nil {
		_, err = Find()
		if err != nil && required && os.Getenv(machine.KernelVariable) == "" {
			_, err = machine.Fetch(t.Context())
		}
	}
	switch {
	case err == nil:
	case required:
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, counterArg) {
		count()
		return
	}
	subject.Add(subjects()...)
	Main()
	os.Exit(m.Run())
}

// run runs faults, and tells on standard error how far it is.
func run(t *testing.T, o Options) Report {
	t.Helper()
	needsMachine(t)
	begin := time.Now()
	o.Seed = uint64(begin.UnixNano())
	t.Logf("seed %d", o.Seed)
	o.Progress = func(fault, text string) {
		fmt.Fprintf(os.Stderr, "%5.1fs %s: %s\n", time.Since(begin).Seconds(), fault, text)
	}
	r, err := Run(t.Context(), o)
	assert.NoError(t, err) // the report has the other faults
	t.Logf("%s, QEMU %s, %v", r.Kernel, r.QEMU, time.Since(begin))
	return r
}

// fast are the faults of a plain go test, and its subjects: one machine runs them in a few seconds, for
// both tests.
func fast() (o Options) {
	o.Faults = []string{"none", "step-back-1s"}
	for _, s := range subject.All() {
		if s.Group == Ours || s.Name == mutants.Control || slices.Contains(o.Faults, catches[s.Name]) {
			o.Subjects = append(o.Subjects, s.Name)
		}
	}
	return o
}

// ran is the report of fast, once a test has run it.
var ran *Report

func runFast(t *testing.T) Report {
	if ran == nil {
		r := run(t, fast())
		ran = &r
	}
	return *ran
}

// TestFaults shows that our generators keep their promises.
func TestFaults(t *testing.T) {
	var o Options
	var r Report
	if *allFlag {
		r = run(t, o)
	} else {
		o, r = fast(), runFast(t)
		// A fixed node number promises nothing of a copy, and the strategies on the wall clock wait for their leases alike.
		copied := Options{Faults: []string{"copy-shared-vmclock"}, Kills: 2}
		for _, s := range subject.All() {
			if s.Group == Ours && s.Restarts && s.Steady {
				copied.Subjects = append(copied.Subjects, s.Name)
			}
		}
		more := run(t, copied)
		o.Faults, r.Rows, r.Skipped = append(o.Faults, copied.Faults...), append(r.Rows, more.Rows...), more.Skipped
	}
	// A busy host slows an emulated machine down, now here, now there. What is slow by itself is so
	// again, with fewer beside it.
	again := Options{Kills: 2}
	for _, row := range r.Rows {
		if row.Group != Ours || !slices.ContainsFunc(row.Broken, isSlow) {
			continue
		}
		if !slices.Contains(again.Faults, row.Fault) {
			again.Faults = append(again.Faults, row.Fault)
		}
		if !slices.Contains(again.Subjects, row.Subject) {
			again.Subjects = append(again.Subjects, row.Subject)
		}
	}
	if len(again.Faults) > 0 {
		t.Logf("once more, since it was slow: %s under %s", again.Subjects, again.Faults)
		r.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool {
			return slices.Contains(again.Faults, row.Fault) && slices.Contains(again.Subjects, row.Subject)
		})
		r.Rows = append(r.Rows, run(t, again).Rows...)
	}
	for _, f := range Faults() {
		if len(o.Faults) > 0 && !slices.Contains(o.Faults, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) { checkRows(t, r, f) })
	}
}

// isSlow reports whether a promise may have been broken by a slow machine: a call that took long, a grant that ended
// before its keeper had the processor, a server that answered too late. It makes no ID come twice or out of order.
func isSlow(promise string) bool {
	return !strings.Contains(promise, "are duplicates") && !strings.Contains(promise, "are not above") && !strings.Contains(promise, "came twice")
}

// checkRows looks at the rows of a fault.
func checkRows(t *testing.T, r Report, f Fault) {
	if i := slices.IndexFunc(r.Skipped, func(s Skip) bool { return s.Fault == f.Name }); i >= 0 {
		if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "" {
			t.Fatal(r.Skipped[i].Why)
		}
		t.Skip(r.Skipped[i].Why)
	}
	ours := 0
	for _, row := range r.Rows {
		if row.Fault != f.Name {
			continue
		}
		v := row.Verdict
		t.Logf("%-40s %7d IDs, %d duplicates, %d disorder, %d failed, stall %v, lead %v, recovery %v %s %s %v",
			row.Subject, v.IDs, v.Duplicates, v.Disorder, v.Failed, v.Stall, v.Lead, v.Recovery, v.Error, row.Known, row.Broken)
		if row.Group == Ours {
			ours++
		}
		// A promise that another generator breaks is a finding of the report.
		if row.Group == Ours || row.Subject == mutants.Control {
			assert.Empty(t, row.Broken, "%s under %s", row.Subject, row.Fault)
		}
	}
	require.Positive(t, ours, "no generator of ours met the fault")
}

// catches has the fault that catches each mutant.
var catches = func() map[string]string {
	all := map[string]string{rejects: "step-back-1s"}
	for _, m := range mutants.All() {
		all[m.Name] = m.Kernel
	}
	return all
}()

// TestMutantsAreCaught shows that the bench finds the bugs of known generators, and none in
// the sound one beside them. On a busy host a machine is so slow that a bug may pass by
// chance: what was not caught is tried again. Without -kernel.all it is those of the fast faults.
func TestMutantsAreCaught(t *testing.T) {
	var left []string
	for _, m := range subjects() {
		if m.Name != mutants.Control && (*allFlag || slices.Contains(fast().Subjects, m.Name)) {
			require.NotEmpty(t, catches[m.Name])
			left = append(left, m.Name)
		}
	}
	for attempt := 0; attempt < 3 && len(left) > 0; attempt++ {
		o := Options{Subjects: append(slices.Clone(left), mutants.Control), Kills: 30}
		for _, name := range left {
			if !slices.Contains(o.Faults, catches[name]) {
				o.Faults = append(o.Faults, catches[name])
			}
		}
		var r Report
		if attempt == 0 && !*allFlag {
			o, r = fast(), runFast(t)
		} else {
			r = run(t, o)
		}
		require.Len(t, r.Rows, len(o.Faults)*len(o.Subjects))
		for _, row := range r.Rows {
			broken := strings.Join(row.Broken, "; ")
			switch {
			case row.Group == Ours: // as TestFaults finds
			case row.Subject == mutants.Control:
				require.Empty(t, broken, "the sound generator under %s", row.Fault)
			case broken != "":
				t.Logf("%s: caught by %s: %s", row.Subject, row.Fault, broken)
				if row.Fault == catches[row.Subject] {
					left = slices.DeleteFunc(left, func(name string) bool { return name == row.Subject })
				}
			case row.Fault == catches[row.Subject]:
				t.Logf("%s: not caught by %s: %+v", row.Subject, row.Fault, row.Verdict)
			}
		}
	}
	require.Empty(t, left, "not caught")
}

// A disk that ignores flushes loses acknowledged writes, and the suite says so.
func TestPowerCutsOfDeafDisk(t *testing.T) {
	if !*allFlag {
		t.Skip("only with -kernel.all: it takes half a minute")
	}
	needsMachine(t)
	found, err := Find()
	require.NoError(t, err)
	b := &bench{o: Options{Seed: 3, Kernel: found, Progress: func(f, s string) { t.Log(f, s) }}, dir: t.TempDir()}
	fault := Faults()[slices.IndexFunc(Faults(), func(f Fault) bool { return f.CutsPower == "ext4" })]
	out, err := cutPower(t.Context(), b, fault, 5, true)
	require.NoError(t, err)
	assert.NotEmpty(t, out.rows[0].Broken)
	t.Log(out.rows[0].Broken)
}

// What a call may fail by, and which ID may be late, depends on the clock that a generator reads.
func TestJudge(t *testing.T) {
	steady := subject.Subject{Group: Ours, Steady: true, Leased: true, Bound: -1}
	raw, pinned, peer := steady, steady, subject.Subject{Group: Peers, Bound: -1}
	raw.Steady, pinned.Leased = false, false
	step := guest.Fault{Kind: guest.Clocks}
	behind, calm, unset, late, wait, awake, full := step, step, step, step, step, step, guest.Fault{Kind: guest.Disks, Causes: []string{"no space"}}
	behind.Behind, calm.Calm, unset.NoRTC, late.Causes, wait.Wait, wait.Right, awake.Right = true, true, true, []string{"set ahead"}, true, true, true
	counted, patient := subject.Subject{Group: Ours, Bound: time.Second, Counted: true}, guest.Fault{Timeout: 9 * time.Second}
	waited := func(d time.Duration) Verdict { return Verdict{IDs: 9, Stall: generatortest.Seconds(d)} }
	failed, stuck, lag := Verdict{IDs: 9, Failed: 1}, Verdict{IDs: 9, Stuck: true}, Verdict{IDs: 9, Lag: generatortest.Seconds(time.Second)}
	for i, test := range []struct {
		f    guest.Fault
		s    subject.Subject
		v    Verdict
		want string
	}{
		{step, steady, failed, "1 calls failed, though it reads no clock that stepped"}, {step, raw, failed, ""}, {unset, steady, failed, ""}, {wait, steady, failed, ""},
		{calm, raw, failed, "1 calls failed, though no clock stepped"}, {calm, peer, failed, ""}, {full, steady, failed, `nor the log says ["no space"]`},
		{step, raw, stuck, "no ID after the fault"}, {behind, raw, stuck, ""}, {behind, steady, stuck, "no ID after the fault"}, {step, peer, stuck, ""},
		{late, steady, Verdict{IDs: 9}, `nor the log says ["set ahead"]`}, {late, steady, Verdict{IDs: 9, Named: true}, ""}, {late, raw, Verdict{IDs: 9}, ""}, {late, pinned, Verdict{IDs: 9}, ""},
		{awake, steady, lag, "1s behind the clock"}, {awake, pinned, lag, "1s behind the clock"}, {awake, peer, lag, ""}, {step, steady, lag, ""},
		{wait, steady, lag, "1s behind the clock"}, {wait, pinned, lag, ""}, {wait, raw, lag, "1s behind the clock"},
		{full, counted, waited(time.Second), ""}, {full, counted, waited(2 * time.Second), "a call took 2s; its strategy allows 1s"},
		{patient, counted, waited(9 * time.Second), ""}, {patient, counted, waited(10 * time.Second), "a call took 10s; its strategy allows 9s"},
		{patient, subject.Subject{Group: Ours, Bound: time.Second}, waited(9 * time.Second), "a call took 9s; its strategy allows 1s"},
	} {
		broken, _ := judge(test.f, test.s, test.v)
		if text := strings.Join(broken, "; "); test.want == "" {
			assert.Empty(t, text, i)
		} else {
			assert.Contains(t, text, test.want, i)
		}
	}
	both := add(Verdict{}, Verdict{Stuck: true, Named: true, Twice: &check.Twice{}})
	assert.True(t, both.Stuck && both.Named && both.Twice != nil, "what a copy shows counts")
}

// An ID that comes again is seen: in another process and in the same one, in a copy of the machine, and after a power cut.
func TestComesTwice(t *testing.T) {
	c := check.New(nil)
	for i, process := range []int{0, 1, 1, 1} {
		c.Add(time.Duration(i), check.ID{Text: "7", Start: process})
	}
	assert.Equal(t, []int{3, 2}, []int{c.Verdict().Duplicates, c.Verdict().Again})
	assert.Equal(t, &check.Twice{ID: "7", Again: check.Sight{By: 1, At: 1}}, c.Verdict().Twice, "the first that came again")
	assert.Equal(t, again{ids: 2, span: 2}, compare([]string{"7", "8", "9"}, []string{"8", "8", "9", "10"}))
	book := newBook()
	assert.Empty(t, book.add(guest.Fact{Issued: "7"}, guest.Fact{Issued: "8"}))
	book.cutOff()
	assert.Equal(t, []string{"cut 1: 7 was issued again, last before cut 1"}, book.clone().add(guest.Fact{Issued: "7"}, guest.Fact{Issued: "9"}))
	assert.Equal(t, 2, book.IDs, "the clone has a ledger of its own")
	assert.Empty(t, book.add(guest.Fact{Issued: "9"}))
}

// No mutant breaks what a copy may repeat, so the judgement itself is looked at.
func TestJudgeCopy(t *testing.T) {
	leased := subject.Subject{Group: Ours, Restarts: true, Leased: true}
	segmented := subject.Subject{Group: Ours, Restarts: true, Reserve: 8}
	ordered := subject.Subject{Group: Ours, Restarts: true}
	fixed := subject.Subject{Group: Ours}
	peer := subject.Subject{Group: Peers}
	shared := guest.Fault{Shared: true, Window: 3 * time.Second}
	told, cloned, clock := shared, shared, shared
	told.Told, cloned.Shared, clock.VMClock = true, false, true
	batches := leased
	batches.Batch = 8
	millis := func(n int64) again { return again{ids: 9, span: n << 22} }
	const log = "WARN lease: lost, a copy of this process wrote to the cell"
	const tells = "WARN lease: memory was restored, claiming anew node=7 by=\"/dev/vmclock0, disruption_marker\""
	for _, test := range []struct {
		name   string
		f      guest.Fault
		s      subject.Subject
		a      again
		log    string
		broken bool
		text   string
	}{
		{"nothing came twice", told, leased, again{}, log, false, ""},
		{"nothing was issued", told, leased, again{idle: true}, log, true, "issued nothing after the snapshot"},
		{"a peer issued nothing", told, peer, again{idle: true}, "", false, ""},
		{"told", told, leased, again{ids: 1}, log, true, "1 IDs came twice: the copy called Restored before"},
		{"told, segmented", told, segmented, again{ids: 1}, "", true, "called Restored before"},
		{"in the window", shared, leased, millis(3000), log, false, "the last 3s after the snapshot, in the rest of a window of 3s"},
		{"after the window", shared, leased, millis(3001), log, true, "the last 3.001s after the snapshot"},
		{"not noticed", shared, leased, millis(1000), "INFO lease: claimed", true, `the log says "lease: lost": false`},
		{"in the reserve", shared, segmented, again{ids: 8}, "", false, "the rest of its reserve of at most 8"},
		{"beyond the reserve", shared, segmented, again{ids: 9}, "", true, "its reserve is at most 8"},
		{"ordered", shared, ordered, again{ids: 1}, "", true, "its reserve is at most 0"},
		{"the store was copied", cloned, leased, again{ids: 7}, "", false, "7 IDs came twice: " + knownOneStore},
		{"by VMClock", clock, leased, again{copies: 3}, tells, false, ""},
		{"not told by VMClock", clock, leased, again{}, log, true, `the log does not say "by=`},
		{"a call in flight", clock, leased, again{ids: 1, seen: 1, copies: 3}, tells, false, "1 IDs came twice: in 1 of 3 copies, where a call was in flight"},
		{"a batch in flight", clock, batches, again{ids: 16, seen: 2, copies: 3}, tells, false, "in 2 of 3 copies"},
		{"two calls", clock, leased, again{ids: 2, seen: 1, copies: 3}, tells, true, "in 1 of 3 copies, where a call was in flight: one call each"},
		{"a fixed node number", told, fixed, again{ids: 7}, "", false, knownFixed},
		{"a peer", told, peer, again{ids: 7}, "", false, knownNoCall},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken, known := judgeCopy(test.f, test.s, test.a, test.log)
			text, none := known, broken
			if test.broken {
				text, none = broken, known
			}
			require.Empty(t, none)
			if test.text == "" {
				require.Empty(t, text)
			}
			require.Contains(t, text, test.text)
		})
	}
}

// counterArg makes this program what lease exec runs in the machine.
const counterArg = "-kernel.counter"

// count issues IDs of the layout twitter by the wall clock, as a program of a user does: none below the floor, and it
// counts on while its clock is behind.
func count() {
	const epoch = 1288834974657
	node, _ := strconv.ParseInt(os.Getenv("LEASE_NODE"), 10, 64)
	floor, _ := strconv.ParseInt(os.Getenv("LEASE_FLOOR_MS"), 10, 64)
	for slot := (floor-epoch)<<12 - 1; ; time.Sleep(time.Millisecond) {
		slot = max(slot+1, (time.Now().UnixMilli()-epoch)<<12)
		if _, err := fmt.Println(slot>>12<<22 | node<<12 | slot&4095); err != nil {
			return
		}
	}
}

// TestExec runs lease exec on a kernel whose clock steps past the end of the grant, and back: the next program with the
// number issues no ID a second time.
func TestExec(t *testing.T) {
	if !*allFlag {
		t.Skip("it builds tickflake with all engines, and boots a machine of its own for a minute (-kernel.all)")
	}
	needsMachine(t)
	program := filepath.Join(t.TempDir(), "tickflake")
	build := exec.Command("go", "build", "-o", program, "-ldflags", "-s -w", "../../tickflake")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := run(t, Options{Faults: []string{"step-ahead-back-4s"}, Program: program, Args: []string{
		"lease", "exec", "--store", "state", "--layout", "twitter", "--node", "5", "--window", guest.ExecWindow.String(), "--timeout", "1m", "--", "/init", counterArg,
	}})
	require.Len(t, r.Rows, 1)
	require.Empty(t, r.Rows[0].Broken)
	require.Contains(t, r.Rows[0].Verdict.Error, "the clock was set ahead by 4s")
}
