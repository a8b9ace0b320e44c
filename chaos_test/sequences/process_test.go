//go:build unix

package sequences

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// job is what a process does: its callers take numbers of one sequence, and each prints every
// call that has returned.
type job struct {
	URL, Name  string
	Definition sequence.Definition
	Callers    int
	Calls      int           // of each caller, or 0 for no end
	Batch      int64         // each fifth call takes so many numbers; 0 stands for 1
	Pace       time.Duration // between the calls of a caller, or 0 for none
	Inspect    bool          // one more caller reads the highest number granted
	Together   bool          // it is ready, and begins when its input ends
	Dies       bool          // it kills itself in its first call: it has its number, and has not printed it
}

const jobEnv = "TICKFLAKE_TEST_SEQUENCE"

// With jobEnv the test binary is a process that does a job.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		var j job
		err := json.Unmarshal([]byte(text), &j)
		if err == nil {
			err = j.do(context.Background())
		}
		if err != nil {
			say("error %s", strings.ReplaceAll(err.Error(), "\n", "; "))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// say prints a line by one write, which is done wholly or not at all, since a pipe takes
// short ones so.
func say(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }

// now is the time in nanoseconds by a clock that all processes of the host share.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// do does the job. It has a minute for each operation: the machine may be busy.
func (j job) do(ctx context.Context) error {
	store, err := stores.Open(ctx, j.URL)
	if err != nil {
		return err
	}
	q, err := sequence.Open(ctx, store, j.Name, sequence.WithDefinition(j.Definition),
		sequence.WithTimeout(time.Minute), sequence.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	if j.Together {
		say("ready 0 0 0 0")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
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
		begin := now()
		first, err := q.NextN(ctx, n)
		if err != nil {
			return err
		}
		if j.Dies {
			_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {} // until it is dead
		}
		say("took %d %d %d %d", first, n, begin, now())
	}
	return nil
}

func (j job) look(ctx context.Context, store stores.Store) error {
	ticker := time.NewTicker(max(5*j.Pace, time.Nanosecond))
	defer ticker.Stop()
	for ctx.Err() == nil {
		<-ticker.C
		begin := now()
		info, err := sequence.Inspect(context.WithoutCancel(ctx), store, j.Name)
		if errors.Is(err, sequence.ErrStore) {
			continue // the machine is busy
		}
		if err != nil {
			return err
		}
		say("read %d 0 %d %d", info.Last, begin, now())
	}
	return nil
}

// process is a process that does a job.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
	lines *bufio.Scanner
}

func (j job) start(t testing.TB) *process {
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(j)
	require.NoError(t, err)
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(out)
	p.input, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	return p
}

// next returns the next call that the process has printed, or false when it has ended.
func (p *process) next() (call, bool, error) {
	if !p.lines.Scan() {
		return call{}, false, p.lines.Err()
	}
	var c call
	var kind string
	if _, err := fmt.Sscan(p.lines.Text(), &kind, &c.first, &c.n, &c.begin, &c.end); err != nil {
		return c, false, fmt.Errorf("the process says %q", p.lines.Text())
	}
	return c, true, nil
}

// kill is kill -9.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// wait waits for the end of the process, and returns an error unless it was killed or has
// done its job.
func (p *process) wait() error {
	err := p.cmd.Wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	return err
}
