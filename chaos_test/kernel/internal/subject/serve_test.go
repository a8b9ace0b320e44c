package subject

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a generator that counts, and notes what happens to it.
type recorder struct {
	events []string
	issued int
	next   func() error // before each ID
}

func (r *recorder) subject() Subject {
	return Subject{Name: "recorder", Open: func(context.Context, Place) (Source, error) {
		return Source{
			Next: func(context.Context) (string, time.Duration, error) {
				if r.next != nil {
					if err := r.next(); err != nil {
						return "", 0, err
					}
				}
				r.issued++
				r.events = append(r.events, "next")
				return strconv.Itoa(r.issued), 0, nil
			},
			Restored: func(context.Context) error { r.events = append(r.events, "restored"); return nil },
			Close:    func() error { r.events = append(r.events, "close"); return nil },
		}, nil
	}}
}

// writer is called for each burst of a subject.
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) {
	if string(p) == Made+"\n" { // no burst
		return len(p), nil
	}
	return w(p)
}

// All IDs of a burst are in one write, before the next burst begins: a process that is
// killed has issued no more than one burst that was not printed.
func TestOneWritePerBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		printed, writes := 0, 0
		in, stop := io.Pipe()
		err := serve(r.subject(), Pace{Burst: 4, Interval: time.Second}, Place{}, in, writer(func(p []byte) (int, error) {
			n := strings.Count(string(p), "\n")
			assert.Equal(t, 4, n)
			printed += n
			assert.Equal(t, r.issued, printed)
			if writes++; writes == 3 {
				return 0, syscall.EPIPE
			}
			return len(p), nil
		}))
		require.NoError(t, err)
		assert.Equal(t, 3, writes)
		assert.Equal(t, "close", r.events[len(r.events)-1])
		require.NoError(t, stop.Close())
	})
}

// A burst of slow calls is printed after the call that exceeds the interval.
func TestSlowCallsArePrintedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{next: func() error { time.Sleep(600 * time.Millisecond); return nil }}
		in, stop := io.Pipe()
		err := serve(r.subject(), Pace{Burst: 10, Interval: time.Second}, Place{}, in, writer(func(p []byte) (int, error) {
			assert.Equal(t, "1 600000000 0\n2 600000000 0\n", string(p))
			return 0, syscall.EPIPE
		}))
		require.NoError(t, err)
		require.NoError(t, stop.Close())
	})
}

func TestFailedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		r.next = func() error {
			if r.issued == 1 {
				r.issued++
				return errors.New("no\nstore")
			}
			return nil
		}
		in, stop := io.Pipe()
		broken := errors.New("no space")
		err := serve(r.subject(), Pace{Burst: 3, Interval: time.Second}, Place{}, in, writer(func(p []byte) (int, error) {
			assert.Equal(t, "1 0 0\n! 0 no store\n3 0 0\n", string(p))
			return 0, broken
		}))
		require.ErrorIs(t, err, broken)
		require.NoError(t, stop.Close())
	})
}

// A subject that holds issues nothing, however long, and hears that its memory was
// restored before it issues the next ID. The end of standard input ends it.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		command string
		after   []string
	}{
		{Restored, []string{"restored", "next"}},
		{Go, []string{"next", "next"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			var out bytes.Buffer
			in, say := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- serve(r.subject(), Pace{Burst: 2, Interval: time.Second}, Place{}, in, &out) }()
			time.Sleep(1500 * time.Millisecond)
			_, err := io.WriteString(say, Hold+"\n")
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, 4, r.issued)
			require.True(t, strings.HasSuffix(out.String(), "\n"+Held+"\n"), out.String())
			time.Sleep(time.Hour)
			require.Equal(t, 4, r.issued)
			_, err = io.WriteString(say, c.command+"\n")
			require.NoError(t, err)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Greater(t, len(r.events), 5)
			assert.Equal(t, c.after, r.events[4:6])
			require.NoError(t, say.Close())
			require.NoError(t, <-ended)
			assert.Equal(t, "close", r.events[len(r.events)-1])
		})
	}
}

func TestServeRefuses(t *testing.T) {
	in := strings.NewReader("")
	assert.ErrorContains(t, serve(Subject{Skipped: "there is no module"}, Default, Place{}, in, io.Discard), "there is no module")
	failing := Subject{Open: func(context.Context, Place) (Source, error) { return Source{}, errors.New("no disk") }}
	assert.ErrorContains(t, serve(failing, Default, Place{}, in, io.Discard), "no disk")

	r := &recorder{}
	in2, say := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(r.subject(), Default, Place{}, in2, io.Discard) }()
	_, err := io.WriteString(say, "dance\n")
	require.NoError(t, err)
	assert.ErrorContains(t, <-ended, `"dance" is no command`)
	require.NoError(t, say.Close())
}
