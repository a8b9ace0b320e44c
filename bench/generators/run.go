package generators

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/peers"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/rig"
)

// Variant is a script in place of one of the catalogue.
type Variant struct {
	Script string
	Second string // the script of a second process, if there is one
	Note   string // how it differs
}

var (
	stepped = Variant{"begin 2026-06-01T12:00:00Z; ids 2000 over 2s", "begin 2026-06-01T12:00:01Z; ids 2000 over 2s",
		"two real processes; the wall was stepped back by 1 s in between"}
	burst = Variant{"begin 2026-06-01T12:00:00Z; ids 1000", "begin 2026-06-01T12:00:00Z; ids 1000",
		"two real processes, started at the same instant; 1000 IDs each"}
	gentleEnd = Variant{"begin end-20ms; ids 100; pass 10ms; ids 100; stream 10; pass 9ms; ids 100; pass 2ms; ids 10; pass 1h; ids 3", "",
		"with fewer IDs than use up a tick, where some spin"}
	young = Variant{"begin 2000-01-02T00:00:00Z; ids 50; pass 1s; ids 50", "",
		"in the year 2000, where a bubble begins"}
)

// Instead returns the script in place of a fault's own, which cannot drive the subject. It has no
// script if there is none.
func (s Subject) Instead(fault string) Variant {
	bubble := s.Driven == peers.Package
	switch {
	case fault == "F11" && (bubble || s.Shared):
		return stepped
	case fault == "F12" && (bubble || s.Shared):
		return burst
	case fault == "F17" && bubble && !s.End.IsZero():
		return gentleEnd
	case fault == "F18" && bubble && s.Epoch.Year() > 2000:
		return young
	}
	return Variant{}
}

// excuse says why a fault does not apply, where the suite cannot know.
func (s Subject) excuse(fault string) string {
	switch {
	case fault == "F13" && s.Shared && s.Driven != peers.Package:
		return "its state is in package variables, so that two processes cannot be stopped and woken side by side"
	case fault == "F17" && s.End.IsZero():
		return "its time ends after 2262, where the clock's time ends"
	}
	return ""
}

// Interrupted is why a fault was skipped after the end of the context.
const Interrupted = "the run was interrupted"

// Run puts subjects through the catalogue, and returns the results of each by fault. A process of
// its own that a peer needs must answer within limit of real time. When ctx ends, the rest is
// skipped as [Interrupted].
//
// With several callers at once it is unknown who waits for what, so the longest stall of
// such a script is that of another run with one caller.
func Run(ctx context.Context, list []Subject, limit time.Duration) []map[string]generatortest.Result {
	all := make([]map[string]generatortest.Result, len(list))
	order := make([]int, len(list)) // those that may use up the limit begin first
	for i := range list {
		all[i], order[i] = map[string]generatortest.Result{}, i
	}
	slow := func(i int) int {
		if list[i].Driven == peers.Package {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return slow(a) - slow(b) })
	var mu sync.Mutex // guards all
	var group sync.WaitGroup
	slots := make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))
	for _, i := range order {
		for _, s := range generatortest.Catalogue() {
			slots <- struct{}{}
			group.Go(func() {
				got := list[i].put(ctx, s, limit)
				mu.Lock()
				all[i][s.Fault] = got
				mu.Unlock()
				<-slots
			})
		}
	}
	group.Wait()
	return all
}

// put puts the subject through one fault.
func (s Subject) put(ctx context.Context, fault generatortest.Scenario, limit time.Duration) generatortest.Result {
	instead := s.Instead(fault.Fault)
	l := life{Result: generatortest.Result{Skipped: s.excuse(fault.Fault)}}
	var err error
	switch {
	case l.Result.Skipped != "" || ctx.Err() != nil:
	case instead.Second != "":
		l, err = s.lives(ctx, instead, limit)
	case s.Driven == peers.Package:
		l, err = s.ask(ctx, cmp.Or(instead.Script, fault.Script.Line()), false, limit)
	default:
		l = s.run(fault.Script, false)
		if fault.Script.Callers > 1 {
			alone := fault.Script
			alone.Callers = 1
			l.Result.LongestStall = s.run(alone, false).Result.LongestStall
		}
	}
	switch {
	case ctx.Err() != nil:
		l.Result = generatortest.Result{Skipped: Interrupted}
	case err != nil:
		l.Result = generatortest.Result{Skipped: "cannot be driven: " + err.Error()}
	}
	l.Result.Fault, l.Result.Name = fault.Fault, fault.Name
	return l.Result
}

// live runs a script, in a process of its own if the subject needs one.
func (s Subject) live(ctx context.Context, text string, keep bool, limit time.Duration) (life, error) {
	script, err := generatortest.ParseScript(text)
	if err != nil {
		return life{}, err
	}
	if s.Driven == peers.Package {
		return s.ask(ctx, text, keep, limit)
	}
	return s.run(script, keep), nil
}

// ChildName names the process of a peer among the children of the program: see [rig.Child].
const ChildName = "peer"

// job is a script for a process of its own.
type job struct {
	Peer, Script string
	Keep         bool // the IDs
}

// answerMark begins the line of the answer among those of package testing.
const answerMark = "peer: "

// Child runs one script and ends the process.
func Child(text []byte) error {
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	script, err := generatortest.ParseScript(j.Script)
	if err != nil {
		return err
	}
	all := Peers()
	at := slices.IndexFunc(all, func(s Subject) bool { return s.Name == j.Peer })
	if at < 0 {
		return fmt.Errorf("there is no peer %q", j.Peer)
	}
	// A bubble needs a test around it.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "peer", F: func(t *testing.T) {
		var l life
		if all[at].Driven == peers.Package {
			synctest.Test(t, func(*testing.T) { l = all[at].run(script, j.Keep) })
		} else {
			l = all[at].run(script, j.Keep)
		}
		answer, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", answerMark, answer)
	}}}, nil, nil)
	return nil
}

// ask runs a script in a process of its own, for at most limit of real time.
func (s Subject) ask(ctx context.Context, script string, keep bool, limit time.Duration) (l life, err error) {
	child, err := rig.Child(ChildName, job{s.Name, script, keep})
	if err != nil {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, child.Path)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), child.Env...), time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if answer, found := strings.CutPrefix(line, answerMark); found {
			return l, json.Unmarshal([]byte(answer), &l)
		}
	}
	if ctx.Err() != nil && cmd.ProcessState != nil {
		// A process that waits uses next to no processor time; one that spins, all it gets.
		used, verb := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), "hangs"
		if used > limit/10 {
			verb = "spins"
		}
		return l, fmt.Errorf("%s: no answer within %s of real time, of which it computed for %s", verb, limit, used.Round(10*time.Millisecond))
	}
	said := strings.Join(strings.Fields(stderr.String()+" "+string(out)), " ")
	return l, fmt.Errorf("the process ended without an answer: %w: %s", cmp.Or(err, errors.New("exit code 0")), said[:min(len(said), 300)])
}

// lives runs two processes, one after the other, and judges their IDs together.
func (s Subject) lives(ctx context.Context, v Variant, limit time.Duration) (life, error) {
	all, err := s.ask(ctx, v.Script, true, limit)
	if err != nil {
		return life{}, err
	}
	second, err := s.ask(ctx, v.Second, true, limit)
	if err != nil {
		return life{}, err
	}
	r, next := &all.Result, second.Result
	r.Skipped = cmp.Or(r.Skipped, next.Skipped)
	r.Issued += next.Issued
	r.Errors += next.Errors
	r.Duplicates += next.Duplicates
	r.Disorder += next.Disorder
	r.LongestStall = max(r.LongestStall, next.LongestStall)
	r.LargestLead = max(r.LargestLead, next.LargestLead)
	if r.Violated == nil {
		r.Violated = map[generatortest.Kind]int{}
	}
	for kind, n := range next.Violated {
		r.Violated[kind] += n
	}
	issued := map[string]bool{}
	for _, id := range all.IDs {
		issued[id] = true
	}
	// Counted as the suite counts it for processes that it starts itself.
	if len(second.IDs) > 0 && len(all.IDs) > 0 && second.IDs[0] <= slices.Max(all.IDs) {
		r.Disorder++
	}
	for _, id := range second.IDs {
		if issued[id] {
			r.Duplicates++
			r.Violated[generatortest.Duplicate]++
		}
	}
	return all, nil
}
