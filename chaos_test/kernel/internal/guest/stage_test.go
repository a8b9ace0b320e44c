//go:build linux

package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

func TestMain(m *testing.M) {
	subject.Add(well(wellName), well(otherName), shares(), panics(), ends(), counts(), hangs())
	Main()
	os.Exit(m.Run())
}

// host is the other end of serve, without a machine.
type host struct {
	t   *testing.T
	out io.Writer
	in  *bufio.Scanner
}

func startServe(t *testing.T) *host {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(context.Background(), inR, outW, t.TempDir(), false); outW.Close() }()
	h := &host{t: t, out: inW, in: bufio.NewScanner(outR)}
	t.Cleanup(func() {
		h.send(Request{PowerOff: true})
		require.ErrorIs(t, <-done, context.Canceled)
	})
	require.NotNil(t, h.next().Ready)
	return h
}

func (h *host) send(r Request) {
	b, err := json.Marshal(r)
	require.NoError(h.t, err)
	_, err = h.out.Write(append(b, '\n'))
	require.NoError(h.t, err)
}

func (h *host) next() Message {
	require.True(h.t, h.in.Scan())
	var m Message
	require.NoError(h.t, json.Unmarshal(h.in.Bytes(), &m))
	return m
}

// run runs a fault and returns its results.
func (h *host) run(r Request) (results []Result, failed string) {
	h.send(r)
	for {
		switch m := h.next(); {
		case m.Ask == "time":
			h.send(Request{Answer: &Answer{Text: strconv.FormatInt(time.Now().UnixNano(), 10)}})
		case m.Result != nil:
			results = append(results, *m.Result)
		case m.Done != "":
			require.Equal(h.t, r.Run, m.Done)
			return results, ""
		case m.Failed != "":
			return results, m.Failed
		}
	}
}

func TestServe(t *testing.T) {
	h := startServe(t)
	results, failed := h.run(Request{Run: "none", Subjects: []string{wellName, otherName}})
	require.Empty(t, failed)
	require.Len(t, results, 2)
	require.Positive(t, results[0].Verdict.IDs)
	for _, r := range results {
		require.Zero(t, r.Verdict.Duplicates+r.Verdict.Disorder+r.Verdict.Failed)
		require.Greater(t, r.Verdict.IDs, 50)
	}
}

const (
	wellName  = "well"
	otherName = "also well"
)

// A panic of one subject ends all that share its process, and is no failed call among others.
func TestCrash(t *testing.T) {
	h := startServe(t)
	results, failed := h.run(Request{Run: "none", Subjects: []string{wellName, panicsName}})
	require.Empty(t, failed)
	for _, r := range results {
		require.Equal(t, "exit status 2", r.Crashed)
		require.Positive(t, r.Verdict.Failed)
	}
	results, failed = h.run(Request{Run: "none", Subjects: []string{wellName, endsName}})
	require.Empty(t, failed)
	for _, r := range results {
		require.Empty(t, r.Crashed)
	}
}

const (
	countsName = "counts"
	hangsName  = "hangs"
	panicsName = "panics"
	endsName   = "ends"
)

// counts issues 1, 2, 3 in each process.
func counts() subject.Subject {
	return subject.Subject{Name: countsName, Numbers: true, Open: func(context.Context, subject.Place) (subject.Source, error) {
		n := 0
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) { n++; return strconv.Itoa(n), 0, nil }}, nil
	}}
}

// hangs issues one burst, and hangs in the next call.
func hangs() subject.Subject {
	return subject.Subject{Name: hangsName, Numbers: true, Open: func(context.Context, subject.Place) (subject.Source, error) {
		n := 0
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
			if n++; n > subject.Default.Burst {
				select {}
			}
			return strconv.Itoa(n), 0, nil
		}}, nil
	}}
}

// Each process has an order of its own, and its IDs are compared with those of the others.
func TestRestart(t *testing.T) {
	s := startStage(t, countsName)
	require.NoError(t, s.Restart(nil))
	lines := s.runners[0].count()
	require.Eventually(t, func() bool { return s.runners[0].count() > lines }, startLimit, time.Millisecond)
	s.stop()
	v := s.runners[0].check.Verdict(0)
	require.Positive(t, v.Duplicates)
	require.Zero(t, v.Again)
	require.Zero(t, v.Disorder)
	require.Zero(t, v.Failed, v.Error)
}

// A call that hangs is a stall, as long as the process was not stopped, and no recovery.
func TestCallHangs(t *testing.T) {
	s := startStage(t, hangsName)
	r := s.runners[0]
	require.Eventually(t, func() bool { return r.count() == subject.Default.Burst }, startLimit, time.Millisecond)
	s.Mark()
	hung := s.now()
	require.NoError(t, s.Issue(300*time.Millisecond))
	hung = s.now() - hung
	s.Signal(syscall.SIGSTOP)
	begin := s.now()
	require.NoError(t, s.Issue(time.Second))
	stop := s.now() - begin
	s.Signal(syscall.SIGCONT)
	s.stop()
	v := r.check.Verdict(0)
	require.GreaterOrEqual(t, v.Stall, hung)
	require.Less(t, v.Stall, s.now()-stop)
	require.Equal(t, check.Never, v.Recovery)
}

func panics() subject.Subject {
	return subject.Subject{Name: panicsName, Open: func(context.Context, subject.Place) (subject.Source, error) {
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) { panic("for the test") }}, nil
	}}
}

func ends() subject.Subject {
	return subject.Subject{Name: endsName, Open: func(context.Context, subject.Place) (subject.Source, error) {
		return subject.Source{}, errors.New("for the test")
	}}
}

func well(name string) subject.Subject {
	return subject.Subject{Name: name, Group: "tickflake", Numbers: true, Ordered: true, Open: func(context.Context, subject.Place) (subject.Source, error) {
		var last int64
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
			last = max(last+1, time.Now().UnixNano())
			return strconv.FormatInt(last, 10), 0, nil
		}}, nil
	}}
}
