//go:build linux

package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

const sharesName = "shares"

// shares issues IDs that show their process, and notes in its state that a process made
// its generator.
func shares() subject.Subject {
	return subject.Subject{Name: sharesName, Shares: true, Open: func(_ context.Context, at subject.Place) (subject.Source, error) {
		n := 0
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
			n++
			return fmt.Sprintf("%d-%09d", os.Getpid(), n), 0, nil
		}}, os.WriteFile(filepath.Join(at.Dir, fmt.Sprint(os.Getpid())), nil, 0o600)
	}}
}

func startStage(t *testing.T, names ...string) *Stage {
	t.Helper()
	l := &link{out: io.Discard}
	s, err := newStage(t.Context(), l, Request{Run: "none", Subjects: names}, Fault{}, t.TempDir(), false)
	require.NoError(t, err)
	t.Cleanup(s.close)
	s.Start()
	require.NoError(t, s.ready())
	for _, r := range s.runners {
		r.keepFromNow()
	}
	return s
}

// processes returns the processes that have issued IDs.
func (r *runner) processes() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for _, id := range r.ids {
		pid, _, _ := strings.Cut(id, "-")
		all[pid] = true
	}
	return all
}

func generators(t *testing.T, r *runner) int {
	files, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	return len(files)
}

func TestPreparedProcessWaits(t *testing.T) {
	s := startStage(t, sharesName)
	r := s.runners[0]
	require.NoError(t, s.Prepare())
	next := r.next.pid
	require.NoError(t, s.Prepare(), "there is one already")
	require.Equal(t, next, r.next.pid)
	require.Equal(t, 1, generators(t, r), "the next one has made no generator")
	require.NoError(t, s.Restart(func() error {
		require.Equal(t, 1, generators(t, r))
		return nil
	}))
	require.Eventually(t, func() bool { return r.processes()[fmt.Sprint(next)] }, startLimit, time.Millisecond)
	s.stop()
	require.Equal(t, 2, generators(t, r))
	require.Zero(t, r.check.Verdict(0).Failed)
}

func TestPreparedProcessIsEnded(t *testing.T) {
	s := startStage(t, sharesName)
	require.NoError(t, s.Prepare())
	next := s.runners[0].next.pid
	s.stop()
	require.ErrorIs(t, syscall.Kill(next, 0), syscall.ESRCH)
}

func TestBeside(t *testing.T) {
	s := startStage(t, sharesName, wellName)
	r := s.runners[0]
	require.Eventually(t, func() bool { return len(r.processes()) == 1 }, startLimit, time.Millisecond)
	s.Signal(syscall.SIGSTOP)
	require.NoError(t, s.Beside())
	require.Len(t, s.second, 1, "the other subject shares nothing")
	require.Eventually(t, func() bool { return len(r.processes()) == 2 }, startLimit, time.Millisecond)
	s.Signal(syscall.SIGCONT)
	s.stop()
	require.Len(t, r.processes(), 2)
	v := r.check.Verdict(0)
	require.Zero(t, v.Duplicates+v.Disorder+v.Failed, v.Error)
}
