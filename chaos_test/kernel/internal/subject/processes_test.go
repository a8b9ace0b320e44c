package subject

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
)

// each is how many IDs a process issues between two events of a test.
const each = 15

// process is a subject in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	pipe io.Closer // of out
	out  *bufio.Scanner
	log  *os.File
}

// start starts a process for one subject.
func start(t *testing.T, name, dir string) *process {
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	places, err := json.Marshal([]Place{{Subject: name, Dir: dir}})
	require.NoError(t, err)
	p.cmd.Env = append(os.Environ(), placesVariable+"="+string(places))
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	p.log, err = os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	p.in, p.pipe, p.out = in, out, bufio.NewScanner(out)
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut, p.log}
	require.NoError(t, p.cmd.Start())
	require.NoError(t, errors.Join(theirIn.Close(), theirOut.Close()))
	t.Cleanup(func() { _, _, _ = in.Close(), out.Close(), p.log.Close() })
	return p
}

// logged returns the log.
func (p *process) logged() string {
	b, err := os.ReadFile(p.log.Name())
	require.NoError(p.t, err)
	return string(b)
}

func (p *process) say(command string) {
	_, err := io.WriteString(p.in, command+"\n")
	require.NoError(p.t, err)
}

// until reads lines until one is Held, or there are n IDs.
func (p *process) until(n int) (ids []check.ID, held bool) {
	for n < 0 || len(ids) < n {
		if !p.out.Scan() {
			_ = p.cmd.Wait()
			require.Fail(p.t, "the process has ended", p.logged())
		}
		switch p.out.Text() {
		case Held:
			return ids, true
		case Made:
			continue
		}
		id := Parse(p.out.Text())
		if id.Err == "" { // a strategy may reject a call on a busy machine
			require.GreaterOrEqual(p.t, id.Took.Nanoseconds(), int64(0), p.out.Text())
			ids = append(ids, id)
		}
	}
	return ids, false
}

// rest reads what is left after the end.
func (p *process) rest() (ids []check.ID) {
	for p.out.Scan() {
		if id := Parse(p.out.Text()); id.Err == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// Each subject, as a process that holds, is told that its memory was restored, is killed,
// is started again, and ends in order.
func TestSubjects(t *testing.T) {
	for _, s := range List() {
		if s.Skipped != "" {
			continue
		}
		t.Run(strings.ReplaceAll(s.Name, "/", " "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := start(t, s.Name, dir)
			ids, held := first.until(each)
			require.False(t, held)
			first.say(Hold)
			more, held := first.until(-1)
			require.True(t, held)
			first.say(Restored)
			ids = append(ids, more...)
			more, _ = first.until(each)
			ids = append(ids, more...)
			require.NoError(t, first.cmd.Process.Kill())
			first.rest() // the last line may be half of one, which is no ID
			require.Error(t, first.cmd.Wait())

			second := start(t, s.Name, dir)
			again, _ := second.until(each)
			require.NoError(t, second.in.Close())
			again = append(again, second.rest()...)
			require.NoError(t, second.cmd.Wait(), second.logged())

			if s.Ordered {
				ascend(t, s, ids)
				ascend(t, s, again)
			}
			distinct(t, ids)
			distinct(t, again)
			if s.Restarts {
				distinct(t, append(ids, again...))
			}
		})
	}
}

func ascend(t *testing.T, s Subject, ids []check.ID) {
	for i := 1; i < len(ids); i++ {
		if s.Numbers {
			a, err := strconv.ParseUint(ids[i-1].Text, 10, 64)
			require.NoError(t, err)
			b, err := strconv.ParseUint(ids[i].Text, 10, 64)
			require.NoError(t, err)
			require.Less(t, a, b)
			continue
		}
		require.Less(t, ids[i-1].Text, ids[i].Text)
	}
}

func distinct(t *testing.T, ids []check.ID) {
	seen := map[string]bool{}
	for _, id := range ids {
		require.False(t, seen[id.Text], "%s came twice", id.Text)
		seen[id.Text] = true
	}
}

func TestWindow(t *testing.T) {
	gen, err := openGenerator(t.Context(), Place{Dir: t.TempDir(), Window: 600 * time.Millisecond, Log: io.Discard}, true)
	require.NoError(t, err)
	defer gen.Close()
	assert.Equal(t, "600ms", gen.Keeper().Stats().Window.String())
}

// Subjects of one process end alone.
func TestUnknownSubject(t *testing.T) {
	p := start(t, "none", t.TempDir())
	assert.Empty(t, p.rest())
	var exit *exec.ExitError
	require.ErrorAs(t, p.cmd.Wait(), &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Contains(t, p.logged(), `there is no subject "none"`)
}

// A process whose reader goes away closes its generator and ends without an error.
func TestOutputIsClosed(t *testing.T) {
	p := start(t, "default, monoclock, lease", t.TempDir())
	p.until(each)
	require.NoError(t, p.pipe.Close())
	require.NoError(t, p.cmd.Wait(), p.logged())
	assert.Contains(t, p.logged(), "lease: released")
}

func TestList(t *testing.T) {
	names := map[string]bool{}
	for _, s := range List() {
		assert.False(t, names[s.Name], "%s is there twice", s.Name)
		names[s.Name] = true
		assert.Contains(t, []string{Tickflake, peer}, s.Group, s.Name)
		if s.Skipped != "" {
			assert.Nil(t, s.Open, s.Name)
			continue
		}
		assert.NotEmpty(t, s.How, s.Name)
		assert.NotNil(t, s.Open, s.Name)
		if s.Group == Tickflake {
			assert.True(t, s.Ordered && s.Bound >= 0, s.Name)
			assert.Equal(t, s.Restarts, !strings.Contains(s.How, "WithNode"), "%s: only a store remembers", s.Name)
		}
	}
}
