package subject

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// restoreLimit is how long a subject may take to hear that its memory was restored.
	restoreLimit = 10 * time.Second
	// Again is the pause before a generator that has ended is made again.
	Again = 500 * time.Millisecond
)

// Pace: a process issues burst IDs as fast as it can, or fewer if they take longer than
// interval, and then it sleeps for interval, give or take up to jitter. It is that of about
// thirty subjects beside each other on two emulated processors. Without jitter, bursts would
// meet the milliseconds of an earlier process always or never.
const (
	burst    = 10
	interval = 10 * time.Millisecond
	jitter   = 5 * time.Millisecond
)

// printer prints the lines of one subject. A process that nobody reads ends.
type printer struct {
	number int
	all    *sync.Mutex // of all subjects: a line stands as a whole
	end    func()      // of all subjects
}

// print prints lines at once.
func (p printer) print(lines ...string) {
	var text []byte
	for _, line := range lines {
		text = fmt.Appendf(text, "%d %s\n", p.number, line)
	}
	p.all.Lock()
	defer p.all.Unlock()
	if _, err := os.Stdout.Write(text); err != nil {
		p.end()
	}
}

// Write prints a record of the log.
func (p printer) Write(record []byte) (int, error) {
	p.print(Log + oneLine(string(record)))
	return len(record), nil
}

// Serve runs the subjects of the places, in JSON, in this process, until its output is closed
// or its input ends. It returns the exit code. stood tells how long the process stood still between two instants: no call takes as long.
func Serve(places string, stood func(from, to time.Time) time.Duration) int {
	// A write to a pipe that was closed is an error then, and does not kill the process
	// before it has closed its generators.
	signal.Ignore(syscall.SIGPIPE)
	var all []Place
	if err := json.Unmarshal([]byte(places), &all); err != nil {
		fmt.Fprintf(os.Stderr, "the places of the subjects: %v\n", err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var printing sync.Mutex
	var running sync.WaitGroup
	commands := make([]chan string, len(all))
	for i, at := range all {
		commands[i] = make(chan string, 2) // the host waits for an answer before it sends a third
		out := printer{i, &printing, cancel}
		at.Log = out
		at.Stood = stood
		running.Go(func() { serve(ctx, at, commands[i], out) })
	}
	lines := bufio.NewScanner(os.Stdin)
	go func() { // ends with the process, or with standard input
		defer cancel()
		for lines.Scan() {
			for _, c := range commands {
				select {
				case c <- lines.Text():
				case <-ctx.Done():
				}
			}
		}
	}()
	running.Wait()
	return 0
}

// serve runs a subject, again when it has ended.
func serve(ctx context.Context, at Place, commands <-chan string, out printer) {
	hold(ctx, commands, out)
	for ctx.Err() == nil {
		if err := live(ctx, at, commands, out); err != nil && ctx.Err() == nil {
			out.print(failure(0, fmt.Errorf("its generator has ended: %w", err)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(Again):
		}
	}
}

// live makes the generator, and issues until ctx ends.
func live(ctx context.Context, at Place, commands <-chan string, out printer) (err error) {
	s, ok := Find(at.Subject)
	if !ok {
		return errors.New("there is no such generator")
	}
	source, err := s.Open(ctx, at)
	if err != nil {
		return fmt.Errorf("make the generator: %w", err)
	}
	if source.Close != nil {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	out.print(Made)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lines []string
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			if command == Hold {
				command = hold(ctx, commands, out)
			}
			if command == Restored && source.Restored != nil {
				bounded, cancel := context.WithTimeout(ctx, restoreLimit)
				if err := source.Restored(bounded); err != nil {
					out.print(failure(0, fmt.Errorf("restored: %w", err))) // no strategy bounds it
				}
				cancel()
			}
			continue
		case <-timer.C:
		}
		lines = lines[:0]
		for n, began := 0, time.Now(); n < burst && (n == 0 || time.Since(began) < interval); n++ {
			begin := time.Now()
			id, lead, err := source.Next(ctx)
			marker := Marker() // at once: what was returned before a snapshot is the copy's too
			end := time.Now()
			took := end.Sub(begin) - at.Stood(begin, end)
			if err != nil && ctx.Err() != nil {
				break // the call was ended from here
			}
			var lag time.Duration
			if source.Time != nil && err == nil {
				lag = max(0, begin.Round(0).Sub(source.Time(id)))
			}
			line := fmt.Sprintf("%s %d %d %d %d", id, took, lead, marker, lag)
			if err != nil {
				line = failure(took, err)
			}
			lines = append(lines, line)
		}
		out.print(lines...)
		pause := interval - jitter + rand.N(2*jitter+1)
		if at.Busy {
			pause /= 10
		}
		timer.Reset(pause)
	}
}

// hold holds the subject until the next command, which it returns.
func hold(ctx context.Context, commands <-chan string, out printer) string {
	out.print(Held)
	select {
	case <-ctx.Done():
		return ""
	case command := <-commands:
		return command
	}
}
