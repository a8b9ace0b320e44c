package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tickflake/tickflake/bench/measure"
)

// progress shows what is running and how long is left: in a line that changes, on a
// terminal, or else in a line per section. It may be used by several goroutines.
type progress struct {
	sections []measure.Section
	plan     []time.Duration // of each section
	out      io.Writer       // for lines; nil if there is a bar
	bar      *progressbar.ProgressBar
	columns  int // of the terminal
	now      func() time.Time

	mu       sync.Mutex
	at       int // section
	began    time.Time
	done, of int
}

// parts is how fine the bar is.
const parts = 1000

func newProgress(out io.Writer, quick bool, sections []measure.Section) *progress {
	p := &progress{sections: sections, out: out, now: time.Now}
	for _, s := range sections {
		if quick {
			p.plan = append(p.plan, s.Quick)
		} else {
			p.plan = append(p.plan, s.Full)
		}
	}
	screen, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(screen.Fd())) {
		return p
	}
	p.out, p.columns = nil, 80
	if columns, _, err := term.GetSize(int(screen.Fd())); err == nil && columns > 0 {
		p.columns = columns
	}
	p.bar = progressbar.NewOptions(parts,
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetWidth(barWidth),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionThrottle(250*time.Millisecond),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish(),
	)
	return p
}

// barWidth is the width of the bar, and barRest what else is in its line: " 100% [] ".
const (
	barWidth = 20
	barRest  = 10
)

// begin says that a section begins.
func (p *progress) begin(section int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.began, p.done, p.of = section, p.now(), 0, 0
	if p.out != nil {
		fmt.Fprintf(p.out, "%d/%d %s: %s (about %s left)\n", section+1, len(p.sections), p.sections[section].ID, p.sections[section].Title, short(p.left()))
	}
	p.show("")
}

// step says that so many parts of the section's work are done, and what comes next.
func (p *progress) step(done, of int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.of = min(max(done, 0), max(of, 0)), max(of, 0)
	p.show(what)
}

// end takes the line away.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// show draws the bar, if there is one.
func (p *progress) show(what string) {
	if p.bar == nil {
		return
	}
	said := fmt.Sprintf("%d/%d %s, %s left: %s", p.at+1, len(p.sections), p.sections[p.at].ID, short(p.left()), what)
	room := max(p.columns-barWidth-barRest, 10)
	if runes := []rune(said); len(runes) > room {
		said = string(runes[:room-1]) + "…"
	}
	p.bar.Set(min(int(parts*p.share()), parts-1))
	p.bar.Describe(fmt.Sprintf("%-*s", room, said))
}

// fraction is how much of the section is done, by what it says.
func (p *progress) fraction() float64 {
	if p.of == 0 {
		return 0
	}
	return float64(p.done) / float64(p.of)
}

// left is how long the rest is likely to take: what the section has taken so far tells
// how long its rest takes, and the others take what they were given.
func (p *progress) left() time.Duration {
	elapsed := p.now().Sub(p.began)
	left := max(p.plan[p.at]-elapsed, 0)
	if f := p.fraction(); f > 0.1 {
		left = time.Duration(float64(elapsed) * (1 - f) / f)
	}
	for _, d := range p.plan[p.at+1:] {
		left += d
	}
	return left
}

// share is how much of the whole is done, by the plan.
func (p *progress) share() float64 {
	var done, all time.Duration
	for i, d := range p.plan {
		all += d
		if i < p.at {
			done += d
		}
	}
	if all == 0 {
		return 0
	}
	return (float64(done) + p.fraction()*float64(p.plan[p.at])) / float64(all)
}

func short(d time.Duration) string { return d.Round(time.Second).String() }
