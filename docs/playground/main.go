//go:build js && wasm

// Command playground is the program behind index.html: two generators on virtual machines whose
// clocks go wrong, scripts of the chaos harness, a decoder and a planner. It is the library itself,
// compiled for the browser.
package main

import (
	"encoding/json"
	"syscall/js"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// start is the time at which the clocks of both machines begin.
var start = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

// call is what the page sends: what to do, and what it takes.
type call struct {
	Strategy string
	Clock    generatortest.ClockKind
	Pinned   bool  // the processes of tickflake have one node number; else any that is free
	Millis   int64 // of true time that passes, or of a fault
	IDs      int   // from each generator
	Text     string
	Layout   string
	Nodes    int64
	Rate     float64
	Years    float64
}

// verbs are what the page can ask for. Each returns what becomes JSON.
var verbs = map[string]func(call) (any, error){
	"begin":   begin,
	"pass":    func(c call) (any, error) { return each(func(m *machine) { m.pass(c) }), nil },
	"step":    func(c call) (any, error) { return each(func(m *machine) { m.clock.Step(millis(c)) }), nil },
	"stop":    func(c call) (any, error) { return each(func(m *machine) { m.clock.Freeze(millis(c)) }), nil },
	"suspend": func(c call) (any, error) { return each(func(m *machine) { m.suspend(millis(c)) }), nil },
	"boot":    func(c call) (any, error) { return each(func(m *machine) { m.boot(millis(c)) }), nil },
	"correct": func(c call) (any, error) { return each((*machine).correct), nil },
	"restart": func(c call) (any, error) { return each((*machine).restart), nil },
	"decode":  decode,
	"plan":    plan,
	"script":  script,
}

func main() {
	js.Global().Set("tickflake", js.FuncOf(func(_ js.Value, args []js.Value) any {
		text, err := json.Marshal(answer(args[0].String(), args[1].String()))
		if err != nil {
			text, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		return string(text)
	}))
	js.Global().Call("ready")
	select {} // the page's calls run on this goroutine's behalf
}

func answer(verb, text string) any {
	var c call
	err := json.Unmarshal([]byte(text), &c)
	if do := verbs[verb]; err == nil && do != nil {
		var result any
		if result, err = do(c); err == nil {
			return result
		}
	}
	if err == nil {
		return map[string]string{"error": "no verb " + verb}
	}
	return map[string]string{"error": err.Error()}
}

func millis(c call) time.Duration { return time.Duration(c.Millis) * time.Millisecond }

// machines are the two that stand side by side. One goroutine uses them.
var machines []*machine

func begin(c call) (any, error) {
	strategy, err := strategies.Parse(c.Strategy)
	if err != nil {
		return nil, err
	}
	machines = nil
	for _, s := range subjects(strategy, c.Clock, c.Pinned) {
		m, err := newMachine(s)
		if err != nil {
			return nil, err
		}
		machines = append(machines, m)
	}
	return each(func(*machine) {}), nil
}

// each does something with both machines, and returns what they show.
func each(do func(*machine)) (shown []view) {
	for _, m := range machines {
		do(m)
		shown = append(shown, m.view())
	}
	return shown
}

// decoded is an ID taken apart.
type decoded struct {
	Layout         string
	Time           time.Time
	Node, Sequence int64
	Parts          map[string]int64
}

func decode(c call) (any, error) {
	l, err := snowflake.ParseLayout(c.Layout)
	if err != nil {
		return nil, err
	}
	id, err := snowflake.Parse(c.Text)
	if err != nil {
		return nil, err
	}
	d, err := l.Decode(id)
	return decoded{l.String(), d.Time, d.Node, d.Sequence, d.Parts}, err
}

// planned is a layout and what it can do.
type planned struct {
	Layout       string
	Nodes        int64
	IDsPerSecond float64
	Last         time.Time
}

func plan(c call) (any, error) {
	l, err := snowflake.Plan(snowflake.Demand{Nodes: c.Nodes, RatePerNode: c.Rate, Years: c.Years})
	if err != nil {
		return nil, err
	}
	capacity := l.Capacity()
	return planned{l.String(), capacity.Nodes, capacity.IDsPerSecond, capacity.Last}, nil
}

// outcome is what a script did to a generator.
type outcome struct {
	Name string
	generatortest.Result
}

func script(c call) (any, error) {
	s, err := generatortest.ParseScript(c.Text)
	if err != nil {
		return nil, err
	}
	if s.Strategy == "" {
		s.Strategy = c.Strategy
	}
	if s.Clock == "" {
		s.Clock = string(c.Clock)
	}
	strategy, err := strategies.Parse(s.Strategy)
	if err != nil {
		return nil, err
	}
	kind, err := generatortest.ParseClockKind(s.Clock)
	if err != nil {
		return nil, err
	}
	var outcomes []outcome
	for _, subject := range subjects(strategy, kind, c.Pinned) {
		outcomes = append(outcomes, outcome{subject.Name, generatortest.RunScript(subject, s)})
	}
	return outcomes, nil
}
