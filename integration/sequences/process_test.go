//go:build unix

package sequences

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// job is what a process does: its callers take numbers of one sequence, and each prints every
// call that has returned.
type job struct {
	URL, Name  string
	Definition sequence.Definition
	Period     bool // the name is that of a period, which the first process makes
	Callers    int
	Calls      int           // of each caller, or 0 for no end
	Batch      int64         // each fifth call takes so many numbers; 0 stands for 1
	Pace       time.Duration // between the calls of a caller, or 0 for none
	Inspect    bool          // one more caller reads the highest number granted
	Together   bool          // it is ready, and begins when its input ends
	Dies       bool          // it kills itself in its first call: it has its number, and has not printed it
}

func TestMain(m *testing.M) {
	fleet.Main(m, map[string]func([]byte) error{"sequence": func(text []byte) error {
		var j job
		if err := json.Unmarshal(text, &j); err != nil {
			return err
		}
		return j.do(context.Background())
	}})
}

// say prints a line by one write, which is done wholly or not at all, since a pipe takes
// short ones so.
func say(e fleet.Entry) { _, _ = fmt.Fprintf(os.Stdout, "%d %d %d %d\n", e.First, e.N, e.Begin, e.End) }

// ready is the line of a process that waits for the others.
const ready = "ready"

// start starts the process, whose calls go to the ledger. said gets the number of each, from 1
// on.
func (j job) start(ctx context.Context, l *fleet.Ledger, source string, input *os.File, said func(n int)) (*fleet.Process, error) {
	c, err := fleet.Child("sequence", j)
	if err != nil {
		return nil, err
	}
	waits := make(chan struct{})
	n := 0
	c.Input = input
	c.Line = func(line string) {
		if line == ready {
			close(waits)
			return
		}
		e := fleet.Entry{Source: source}
		if _, err := fmt.Sscan(line, &e.First, &e.N, &e.Begin, &e.End); err != nil {
			panic(fmt.Sprintf("the process says %q", line))
		}
		l.Note(e)
		n++
		said(n)
	}
	if j.Together {
		c.Ready = func(ctx context.Context) error {
			select {
			case <-waits:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return fleet.Start(ctx, c)
}

// do does the job. It has a minute for each operation: the machine may be busy.
func (j job) do(ctx context.Context) error {
	store, err := stores.Open(ctx, j.URL)
	if err != nil {
		return err
	}
	options := []sequence.Option{sequence.WithTimeout(time.Minute), sequence.WithLogger(slog.New(slog.DiscardHandler))}
	if !j.Period {
		options = append(options, sequence.WithDefinition(j.Definition))
	}
	if j.Together {
		fmt.Println(ready)
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
	}
	q, err := sequence.Open(ctx, store, j.Name, options...)
	if err != nil {
		return err
	}
	errs := make([]error, j.Callers+1)
	var calling, looking sync.WaitGroup
	for c := range j.Callers {
		calling.Go(func() { errs[c] = j.call(ctx, q) })
	}
	done, stop := context.WithCancel(ctx)
	if j.Inspect {
		looking.Go(func() { errs[j.Callers] = j.look(done, store) })
	}
	calling.Wait()
	stop()
	looking.Wait()
	return errors.Join(append(errs, q.Close(), store.Close())...)
}

func (j job) call(ctx context.Context, q *sequence.Sequence) error {
	ticker := time.NewTicker(max(j.Pace, time.Nanosecond))
	defer ticker.Stop()
	for i := 0; j.Calls == 0 || i < j.Calls; i++ {
		if j.Pace > 0 {
			<-ticker.C
		}
		n := int64(1)
		if i%5 == 4 {
			n = max(1, j.Batch)
		}
		begin := fleet.Now()
		first, err := q.NextN(ctx, n)
		if err != nil {
			return err
		}
		if j.Dies {
			_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {} // until it is dead
		}
		say(fleet.Entry{First: first, N: n, Begin: begin, End: fleet.Now()})
	}
	return nil
}

func (j job) look(ctx context.Context, store stores.Store) error {
	ticker := time.NewTicker(max(5*j.Pace, time.Nanosecond))
	defer ticker.Stop()
	for ctx.Err() == nil {
		<-ticker.C
		begin := fleet.Now()
		info, err := sequence.Inspect(context.WithoutCancel(ctx), store, j.Name)
		if errors.Is(err, sequence.ErrStore) {
			continue // the machine is busy
		}
		if err != nil {
			return err
		}
		say(fleet.Entry{First: info.Last, Begin: begin, End: fleet.Now()})
	}
	return nil
}
