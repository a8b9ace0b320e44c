package subject

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// restoreLimit is how long a subject may take to hear that its memory was restored.
const restoreLimit = 10 * time.Second

// Files is how many files each place of [Serve] has: input, output and log, from
// descriptor 3 on.
const Files = 3

// Serve runs the subjects of the places, in JSON, in this process. Each ends when its
// output is closed, its input ends, or its generator cannot be made. It returns the exit
// code.
func Serve(places string) int {
	// A write to a pipe that was closed is an error then, and does not kill the process
	// before it has closed its generators.
	signal.Ignore(syscall.SIGPIPE)
	var all []Place
	if err := json.Unmarshal([]byte(places), &all); err != nil {
		fmt.Fprintf(os.Stderr, "the places of the subjects: %v\n", err)
		return 2
	}
	var running sync.WaitGroup
	var failed atomic.Bool // set once a subject has failed, and never cleared
	for i, at := range all {
		file := func(n int, name string) *os.File { return os.NewFile(uintptr(3+Files*i+n), name) }
		in, out, log := file(0, "input"), file(1, "output"), file(2, "log")
		at.Log = log
		running.Go(func() {
			defer func() { _, _, _ = in.Close(), out.Close(), log.Close() }()
			err := fmt.Errorf("there is no subject %q", at.Subject)
			if s, ok := Find(at.Subject); ok {
				err = serve(s, Default, at, in, out)
			}
			if err != nil {
				fmt.Fprintf(log, "%s: %v\n", at.Subject, err)
				failed.Store(true)
			}
		})
	}
	running.Wait()
	if failed.Load() {
		return 1
	}
	return 0
}

func serve(s Subject, p Pace, at Place, in io.Reader, out io.Writer) (err error) {
	if s.Open == nil {
		return errors.New(cmp.Or(s.Skipped, "it has no generator"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	commands := make(chan string)
	go func() { // ends with the process, or with standard input
		defer cancel()
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			select {
			case commands <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	if at.Wait {
		if done, err := wait(ctx, commands, out); done || err != nil {
			return err
		}
	}
	source, err := s.Open(ctx, at)
	if err != nil {
		return fmt.Errorf("make the generator: %w", err)
	}
	if source.Close != nil {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	if _, err := io.WriteString(out, Made+"\n"); err != nil {
		return closed(err)
	}
	return issue(ctx, source, p, commands, out)
}

// issue issues bursts until ctx ends or out is closed.
func issue(ctx context.Context, source Source, p Pace, commands <-chan string, out io.Writer) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var burst []byte
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			if done, err := obey(ctx, source, command, commands, out); done || err != nil {
				return err
			}
			continue
		case <-timer.C:
		}
		burst = burst[:0]
		for n, began := 0, time.Now(); n < p.Burst && (n == 0 || time.Since(began) < p.Interval); n++ {
			begin := time.Now()
			id, lead, err := source.Next(ctx)
			took := time.Since(begin)
			if err != nil && ctx.Err() != nil {
				break // the call was ended from here
			}
			burst = appendLine(burst, id, took, lead, err)
		}
		if _, err := out.Write(burst); err != nil {
			return closed(err)
		}
		timer.Reset(p.Interval - p.Jitter + rand.N(2*p.Jitter+1))
	}
}

// wait holds the subject before it makes its generator. It returns true at its end.
func wait(ctx context.Context, commands <-chan string, out io.Writer) (done bool, err error) {
	if _, err := io.WriteString(out, Held+"\n"); err != nil {
		return true, closed(err)
	}
	select {
	case <-ctx.Done():
		return true, nil
	case <-commands:
		return false, nil
	}
}

// obey does what a command says, and those that follow it while the subject holds. It
// returns true at the end of the subject.
func obey(ctx context.Context, source Source, command string, commands <-chan string, out io.Writer) (done bool, err error) {
	for command == Hold {
		if _, err := io.WriteString(out, Held+"\n"); err != nil {
			return true, closed(err)
		}
		select {
		case <-ctx.Done():
			return true, nil
		case command = <-commands:
		}
	}
	switch command {
	case Go:
		return false, nil
	case Restored:
		if source.Restored == nil {
			return false, nil
		}
		begin := time.Now()
		bounded, cancel := context.WithTimeout(ctx, restoreLimit)
		defer cancel()
		if failed := source.Restored(bounded); failed != nil {
			line := appendLine(nil, "", time.Since(begin), 0, fmt.Errorf("restored: %w", failed))
			if _, err := out.Write(line); err != nil {
				return true, closed(err)
			}
		}
		return false, nil
	}
	return true, fmt.Errorf("%q is no command: want %s, %s or %s", command, Hold, Restored, Go)
}

// closed returns nil for the error of a write to a pipe that was closed.
func closed(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return fmt.Errorf("print IDs: %w", err)
}
