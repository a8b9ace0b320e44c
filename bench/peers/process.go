package peers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// askedFor is the variable that tells a process to run one script and end.
const askedFor = "TICKFLAKE_PEERS_CELL"

// answerMark begins the line of the answer among those of package testing.
const answerMark = "peers-cell: "

// request is a script for a process of its own.
type request struct {
	Peer   string `json:"peer"`
	Script string `json:"script"`
	Keep   bool   `json:"keep"` // the IDs
}

// served says that the program has called Serve, so it can be started again.
var served atomic.Bool

// Serve runs one script and ends the process, if the process was started for that. A
// program or a test that calls [Run] must call Serve first, in main or TestMain: Run
// starts the same program again for peers that need a process of their own, and skips
// them without Serve.
func Serve() {
	served.Store(true)
	asked := os.Getenv(askedFor)
	if asked == "" {
		return
	}
	var r request
	if err := json.Unmarshal([]byte(asked), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// A bubble needs a test around it.
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "cell", F: r.serve}}, nil, nil)
}

func (r request) serve(t *testing.T) {
	script, err := generatortest.ParseScript(r.Script)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range List() {
		if p.Name != r.Peer {
			continue
		}
		var l life
		if p.Driven == ByBubble {
			synctest.Test(t, func(*testing.T) { l = p.run(script, r.Keep) })
		} else {
			l = p.run(script, r.Keep)
		}
		answer, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", answerMark, answer)
		return
	}
	t.Fatalf("no peer %q", r.Peer)
}

// errNotServed is the error of a program that cannot be started again.
var errNotServed = errors.New("it needs a process of its own, and this program does not begin with peers.Serve")

// ask runs a script in a process of its own, for at most limit of real time.
func (p Peer) ask(ctx context.Context, script string, keep bool, limit time.Duration) (life, error) {
	if !served.Load() {
		return life{}, errNotServed
	}
	program, err := os.Executable()
	if err != nil {
		return life{}, err
	}
	asked, err := json.Marshal(request{Peer: p.Name, Script: script, Keep: keep})
	if err != nil {
		return life{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	// A program with the race detector sleeps for a second before it ends.
	cmd.Env = append(os.Environ(), askedFor+"="+string(asked), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if answer, found := strings.CutPrefix(line, answerMark); found {
			var l life
			err := json.Unmarshal([]byte(answer), &l)
			return l, err
		}
	}
	if ctx.Err() != nil && cmd.ProcessState != nil {
		// A process that waits uses next to no processor time; one that spins, all it gets.
		used, verb := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), "hangs"
		if used > limit/10 {
			verb = "spins"
		}
		return life{}, fmt.Errorf("%s: no answer within %s of real time, of which it computed for %s", verb, limit, used.Round(10*time.Millisecond))
	}
	if err == nil {
		err = errors.New("no answer")
	}
	said := strings.Join(strings.Fields(stderr.String()+" "+string(out)), " ")
	return life{}, fmt.Errorf("the process ended without an answer: %w: %s", err, said[:min(len(said), 300)])
}

// lives runs two processes, one after the other, and judges their IDs together.
func (p Peer) lives(ctx context.Context, v Variant, limit time.Duration) (life, error) {
	all, err := p.ask(ctx, v.Script, true, limit)
	if err != nil {
		return life{}, err
	}
	second, err := p.ask(ctx, v.Second, true, limit)
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
	violated := map[generatortest.Kind]int{}
	for _, one := range []generatortest.Result{*r, next} {
		for kind, n := range one.Violated {
			violated[kind] += n
		}
	}
	r.Violations = append(r.Violations, next.Violations...)
	issued := make(map[string]int, len(all.IDs))
	var last string
	for i, id := range all.IDs {
		issued[id] = i + 1
		if above(id, last) {
			last = id
		}
	}
	// Counted as the suite counts it for processes that it starts itself.
	if len(second.IDs) > 0 && !above(second.IDs[0], last) {
		r.Disorder++
	}
	for i, id := range second.IDs {
		if number, again := issued[id]; again {
			r.Duplicates++
			violated[generatortest.Duplicate]++
			r.Violations = append(r.Violations, generatortest.Violation{Kind: generatortest.Duplicate, Step: 1, Call: i + 1,
				Detail: fmt.Sprintf("%s was issued by the process before, as the ID number %d", id, number)})
		}
	}
	r.Violated = violated
	r.Violations = r.Violations[:min(len(r.Violations), generatortest.MaxViolations)]
	all.IDs = append(all.IDs, second.IDs...)
	return all, nil
}

// above compares the texts of IDs. The text of a larger number is longer.
func above(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}
