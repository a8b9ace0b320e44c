// Package spread is the section of the report that shows how many IDs a busy generator
// leaves unused at the boundaries of ticks, and how the IDs of an idle one spread over
// shards:
//
//	go run ./bench --only waste
//
// The program must begin with peers.Serve, for some peers need processes of their own.
package spread

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
)

const (
	id    = "waste"
	title = "IDs wasted, and how they spread"

	samples  = 5                     // per generator, of the spread
	each     = 1024                  // IDs per sample
	interval = 10 * time.Millisecond // between two of them
	patience = 30 * time.Second      // that a process may take; none spins
	least    = 3                     // rounds of those that are busy
	fewest   = 4                     // whole ticks per round
	longest  = 40                    // milliseconds per round
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: id, Title: title, Full: 3 * time.Second, Quick: time.Second, Measure: measureAll}}
}

func measureAll(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	s := results.Section{ID: id, Title: title, About: about, Command: "go run ./bench --only " + id}
	idle, notes := lines(ctx, run)
	s.Notes = append(s.Notes, notes...)
	generators, err := openAll()
	var busy []worn
	if err == nil {
		defer closeAll(generators)
		busy, err = wastes(ctx, run, began, generators)
	}
	if err != nil {
		s.Notes = append(s.Notes, "What a busy generator leaves unused could not be measured: "+err.Error())
	}
	s.Tables, s.Charts = tables(idle, busy)
	s.Verdict = verdict(idle, busy)
	return s
}

// line is a generator that issues an ID now and then.
type line struct {
	name     string
	group    results.Group
	starts   int64    // as in busy
	integers bool     // as in peers.Peer
	by2, by  []spread // over 2 shards, and over more; a sample each
	all      spread   // of all samples together, over more
}

const shards = 16

// lines are those that issue IDs at a low rate, in virtual time.
func lines(ctx context.Context, run *measure.Run) (all []line, notes []string) {
	var list []peers.Peer
	for _, below := range starts {
		p := peers.Starting(startOf(below))
		list = append(list, p)
		all = append(all, line{name: p.Name, group: results.Ours, starts: below, integers: true})
	}
	for _, p := range peers.List() {
		list = append(list, p)
		all = append(all, line{name: p.Name, group: results.Peers, integers: p.Integers})
	}
	for i, p := range list {
		l := &all[i]
		if run.Progress != nil {
			run.Progress(0, int(run.Budget.Milliseconds()), l.name)
		}
		if ctx.Err() != nil {
			break
		}
		low, err := p.IDs(ctx, samples*each, interval, patience)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v.", l.name, err))
			continue
		}
		l.all = spreadOf(low, shards)
		for i := range samples {
			part := low[i*each : (i+1)*each]
			l.by2, l.by = append(l.by2, spreadOf(part, 2)), append(l.by, spreadOf(part, shards))
		}
	}
	return all, notes
}

// worn is a busy generator, and what became of its slots in each round.
type worn struct {
	busy
	rounds []waste
}

// wastes has all generators issue as fast as they can, in turn.
func wastes(ctx context.Context, run *measure.Run, began time.Time, all []busy) ([]worn, error) {
	out := make([]worn, len(all))
	names := make([]string, len(all))
	for i, b := range all {
		out[i].busy, names[i] = b, b.name
	}
	if ctx.Err() != nil {
		return out, nil
	}
	for _, b := range all {
		if _, err := b.issue(nil, 1); err != nil { // to warm up
			return out, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	// A round of all in a fifth of the budget, and at least a few ticks for each.
	slice := min(run.Budget/5/time.Duration(len(all)), longest*time.Millisecond)
	buffer := make([]slot, 0, (longest+2)*perTick)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	run.Rounds(ctx, began, least, names, func(i int) {
		b := &out[i]
		slots, err := b.issue(buffer[:0], max(fewest, int(slice/b.tick)))
		if err != nil {
			failed = fmt.Errorf("%s: %w", b.name, err)
			stop()
			return
		}
		b.rounds = append(b.rounds, wasted(slots, b.perTick))
	})
	return out, failed
}
