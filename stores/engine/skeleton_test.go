package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// texts are in memory. What is set, a server of the same protocol could do wrong.
type texts struct {
	ignoresNew, ignoresOld bool          // the condition that there is no text, or that it has the revision
	gap                    time.Duration // between the check of a condition and the write
	busy, lost             int           // so many writes fail: they are not made, or have lost their answers
	order                  []string      // of the keys that Scan gives; the others are unknown to it
	hangs                  chan struct{} // Get does not return before it is closed
	revision               string        // of each text, unless it is ""

	mu    sync.Mutex
	is    map[string][]byte
	reads int
}

func (x *texts) Get(_ context.Context, key string, _ bool) (engine.Text[string], error) {
	if x.hangs != nil {
		<-x.hangs
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads++
	text, ok := x.is[key]
	return engine.Text[string]{Bytes: text, Found: ok, Revision: cmp.Or(x.revision, string(text)), Latest: true}, nil
}

func (x *texts) Put(_ context.Context, key, revision string, text []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	was, ok := x.is[key]
	switch {
	case x.busy > 0:
		x.busy--
		return engine.ErrBusy
	case revision == "" && ok && !x.ignoresNew, revision != "" && revision != cmp.Or(x.revision, string(was)) && !x.ignoresOld:
		return stores.ErrConflict
	}
	if x.gap > 0 {
		x.mu.Unlock()
		time.Sleep(x.gap) // what it does wrong
		x.mu.Lock()
	}
	x.is[key] = bytes.Clone(text)
	if x.lost > 0 {
		x.lost--
		return errors.New("the answer is lost")
	}
	return nil
}

func (x *texts) Scan(_ context.Context, _, _ string, _ int, found func(string, []byte) bool) error {
	for _, key := range x.order {
		if !found(key, x.is[key]) {
			break
		}
	}
	return nil
}

func (x *texts) skeleton() *engine.Skeleton[string] {
	x.is = make(map[string][]byte)
	return &engine.Skeleton[string]{Texts: x, Namespace: "n", At: func() string { return "fake" }}
}

func TestServersOfAProtocol(t *testing.T) {
	lost := errors.New("the answer is lost")
	for name, test := range map[string]struct {
		server       *texts
		heeds, races error
	}{
		"honest":                 {&texts{}, nil, nil},
		"ignores that it is":     {&texts{ignoresNew: true}, engine.ErrIgnores, engine.ErrRaces},
		"ignores revisions":      {&texts{ignoresOld: true}, engine.ErrIgnores, engine.ErrRaces},
		"checks before it locks": {&texts{gap: 20 * time.Millisecond}, nil, engine.ErrRaces},
		"and loses an answer":    {&texts{gap: 20 * time.Millisecond, lost: 2}, lost, engine.ErrRaces},
		"busy for a moment":      {&texts{busy: 100}, engine.ErrBusy, nil},
		"busy for ever":          {&texts{busy: 1e6}, engine.ErrBusy, engine.ErrBusy},
		"loses an answer":        {&texts{lost: 2}, lost, lost},
	} {
		t.Run(name, func(t *testing.T) {
			for _, check := range []struct {
				run  func(*engine.Skeleton[string]) error
				want error
			}{
				{func(s *engine.Skeleton[string]) error { return engine.Heeds(t.Context(), s, "another") }, test.heeds},
				{func(s *engine.Skeleton[string]) error { return engine.Races(t.Context(), s) }, test.races},
			} {
				err := check.run(test.server.skeleton())
				if check.want == lost {
					assert.EqualError(t, err, lost.Error())
				} else {
					assert.ErrorIs(t, err, check.want)
				}
			}
		})
	}
}

// A List sorts what an engine gives without order, reads what it gives without texts, leaves out keys of
// others and what is gone, and goes on after damaged cells.
func TestListOfSkeleton(t *testing.T) {
	for _, reads := range []int{0, 8} {
		for _, unordered := range []bool{false, true} {
			x := &texts{order: []string{"CONDITIONS", "a", "b", "damaged", "gone", "node/1", "node/2", "z"}}
			s := x.skeleton()
			s.Unordered, s.Reads = unordered, reads
			for _, key := range x.order {
				x.is[key] = []byte("7 v")
			}
			x.is["damaged"] = nil
			if delete(x.is, "gone"); reads == 0 { // it gives what it has
				x.order = append(x.order[:4:4], x.order[5:]...)
			}
			if unordered {
				x.order[1], x.order[5] = x.order[5], x.order[1]
			}
			for _, c := range []struct {
				from, to string
				limit    int
				want     string
			}{
				{"", "\x7f", 99, "[a b node/1 node/2 z]"}, {"", "\x7f", 3, "[a b node/1]"}, {"b", "node/2", 9, "[b node/1]"}, {"", "c", 2, "[a b]"}, {"x", "a", 9, "[]"},
			} {
				cells, err := s.List(t.Context(), c.from, c.to, c.limit)
				var keys []string
				for _, cell := range cells {
					keys = append(keys, cell.Key)
				}
				assert.Equal(t, c.want, fmt.Sprint(keys), "%v, reads %d, unordered %v", c, reads, unordered)
				assert.Equal(t, c.from < "damaged" && c.to > "damaged", errors.Is(err, stores.ErrDamaged), "%v: %v", c, err)
				assert.NotContains(t, fmt.Sprint(err), "gone")
			}
			if x.reads = 0; reads > 0 {
				_, err := s.List(t.Context(), "", "c", 1)
				require.NoError(t, err)
				assert.Equal(t, 1, x.reads, "no more is read than is returned")
			}
		}
	}
}

// A call that hangs is left alone, and after the end of the context nothing is sent.
func TestSkeletonIsBounded(t *testing.T) {
	x := &texts{hangs: make(chan struct{})}
	s := x.skeleton()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, "a")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	close(x.hangs)
	_, err = s.Swap(ctx, "a", 0, nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, x.is, "nothing is sent after the end")
}

// A server that is restored from a backup may give a revision again. A version does not recur.
func TestRevisionsThatRecur(t *testing.T) {
	x := &texts{revision: "1"}
	s := x.skeleton()
	lost, err := s.Swap(t.Context(), "a", 0, []byte("lost"))
	require.NoError(t, err)
	delete(x.is, "a")
	_, err = s.Swap(t.Context(), "a", 0, []byte("other"))
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), "a", lost, []byte("blind"))
	assert.ErrorIs(t, err, stores.ErrConflict)
	is, err := s.Read(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, "other", string(is.Value))
}
