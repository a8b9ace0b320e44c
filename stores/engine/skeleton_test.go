package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// texts are in memory. What is set, a server of the same protocol could do wrong.
type texts struct {
	ignoresNew, ignoresOld bool          // the condition that there is no text, or that it has the revision
	gap                    time.Duration // between the check of a condition and the write
	busy                   int           // so many writes fail
	fails, lost            int           // one of so many fails; the first so many that win have lost their answers
	order                  []string      // the keys that Scan gives; the others are unknown to it
	page                   int           // how many Scan gives at once, in order; 0: all
	still                  bool          // Scan gives all again and again

	mu    sync.Mutex
	is    map[string][]byte
	reads int
	puts  int
}

var errLost = errors.New("the answer is lost")

func (x *texts) Get(_ context.Context, key string, _ bool) (engine.Text[string], error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads++
	text, ok := x.is[key]
	return engine.Text[string]{Bytes: text, Found: ok, Revision: string(text), Latest: true}, nil
}

func (x *texts) Put(_ context.Context, key, revision string, text []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	was, ok := x.is[key]
	x.puts++
	switch {
	case x.fails > 0 && x.puts%x.fails == 0:
		return errLost
	case x.busy > 0:
		x.busy--
		return engine.ErrBusy
	case revision == "" && ok && !x.ignoresNew, revision != "" && revision != string(was) && !x.ignoresOld:
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
		return errLost
	}
	return nil
}

func (x *texts) Scan(_ context.Context, from, _ string, most int, found func(string, []byte)) (more bool, err error) {
	given := 0
	for _, key := range x.order {
		switch {
		case x.page > 0 && key < from && !x.still:
			continue
		case x.page > 0 && given == min(x.page, most) && !x.still:
			return true, nil
		}
		found(key, x.is[key])
		given++
	}
	return x.still, nil
}

func (x *texts) skeleton() *engine.Skeleton[string] {
	x.is = make(map[string][]byte)
	return &engine.Skeleton[string]{Texts: x, Namespace: "n", At: "fake"}
}

func TestServersOfAProtocol(t *testing.T) {
	for name, test := range map[string]struct {
		server       *texts
		heeds, races error
	}{
		"honest":                 {&texts{}, nil, nil},
		"ignores that it is":     {&texts{ignoresNew: true}, engine.ErrIgnores, engine.ErrRaces},
		"ignores revisions":      {&texts{ignoresOld: true}, engine.ErrIgnores, engine.ErrRaces},
		"checks before it locks": {&texts{gap: time.Millisecond}, nil, engine.ErrRaces},
		"and loses answers":      {&texts{gap: time.Millisecond, lost: 1}, errLost, engine.ErrRaces},
		"busy for a moment":      {&texts{busy: 100}, engine.ErrBusy, nil},
		"busy for ever":          {&texts{busy: 1e6}, engine.ErrBusy, engine.ErrBusy},
		"fails every third time": {&texts{fails: 3}, errLost, nil},
		"fails":                  {&texts{fails: 1}, errLost, errLost},
		"loses an answer":        {&texts{lost: 1}, errLost, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				assert.ErrorIs(t, engine.Heeds(t.Context(), test.server.skeleton(), "another"), test.heeds)
				s := test.server.skeleton()
				assert.ErrorIs(t, engine.Races(t.Context(), s, false), test.races)
				server := &texts{}
				s.Texts, server.is = server, test.server.is // it was repaired
				puts := func() int { return server.puts }
				switch test.races {
				case engine.ErrRaces: // until the mark is deleted
					assert.ErrorIs(t, engine.Races(t.Context(), s, true), engine.ErrRaces)
					assert.ErrorIs(t, engine.Heeds(t.Context(), s, "another"), engine.ErrRaces)
					assert.Zero(t, puts())
					delete(server.is, engine.Mark)
					assert.NoError(t, engine.Races(t.Context(), s, false))
				case nil: // it is not probed twice, unless that is wanted
					assert.NoError(t, engine.Races(t.Context(), s, false))
					assert.Zero(t, puts())
					assert.NoError(t, engine.Races(t.Context(), s, true))
					assert.Greater(t, puts(), 700)
				}
			})
		})
	}
}

// far is a server at some distance, so that writes of several processes mix.
type far struct{ *texts }

func (f far) Put(ctx context.Context, key, revision string, text []byte) error {
	way := func() { time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond) }
	way()
	defer way()
	return f.texts.Put(ctx, key, revision, text)
}

// All processes that begin at once on a new store get ahead: those that others disturb take the result of the first.
func TestManyProbeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &texts{}
		s := server.skeleton()
		s.Texts = far{server}
		var probing sync.WaitGroup
		for range 30 {
			probing.Go(func() { assert.NoError(t, engine.Races(t.Context(), s, false)) })
		}
		probing.Wait()
	})
}

// conns counts its calls.
type conns struct{ rests, closes int }

func (c *conns) Rest()        { c.rests++ }
func (c *conns) Close() error { c.closes++; return nil }

// Connections rest before an operation, and not while another is under way.
func TestRestOfSkeleton(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, at := &texts{}, new(conns)
		s := server.skeleton()
		s.Texts, s.Conns = far{server}, at
		for i := range 2 {
			var writing sync.WaitGroup
			for n := range 3 {
				writing.Go(func() {
					_, err := s.Swap(t.Context(), fmt.Sprintf("k%d%d", i, n), 0, nil)
					assert.NoError(t, err)
				})
			}
			writing.Wait()
		}
		assert.NoError(t, s.Close())
		assert.NoError(t, s.Close())
		assert.Equal(t, conns{rests: 2, closes: 1}, *at)
	})
}

// A List sorts and reads what an engine gives without order and texts, asks for the next page of an engine that gives
// pages, leaves out what is gone or no cell, by its key too, goes on after damaged cells, reads no more than it returns, and ends with a
// server that gives the same page for ever.
func TestListOfSkeleton(t *testing.T) {
	inOrder := []string{"CONDITIONS", "a", "a/~", "az~", "b", "d", "damaged", "gone", "z", "~"}
	for name, x := range map[string]*texts{
		"no order":     {order: []string{"d", "b", "CONDITIONS", "damaged", "d", "gone", "z", "a"}},
		"pages of 1":   {order: inOrder, page: 1},
		"pages of 3":   {order: inOrder, page: 3},
		"one page":     {order: inOrder, page: 9},
		"stands still": {order: inOrder, page: 9, still: true},
	} {
		s := x.skeleton()
		s.Reads = 8
		for _, key := range []string{"a", "b", "d", "z", "CONDITIONS"} {
			x.is[key] = []byte("7 v")
		}
		x.is["damaged"] = nil
		for limit, want := range []string{"", "a", "ab", "abd", "abdz", "abdz"} {
			x.reads = 0
			cells, err := s.List(t.Context(), "", "\x7f", limit)
			keys := ""
			for _, cell := range cells {
				keys += cell.Key
			}
			assert.Equal(t, want, keys, name)
			assert.Equal(t, limit > 3, errors.Is(err, stores.ErrDamaged), err)
			assert.NotContains(t, fmt.Sprint(err), "gone")
			assert.True(t, limit > 3 || x.reads == limit, x.reads)
		}
	}
}

func TestFailed(t *testing.T) {
	cause := errors.New("broken pipe")
	err := engine.Failed(t.Context(), "pack", "swap", "node/7", "n", cause)
	assert.EqualError(t, err, `pack: swap node/7 in namespace "n": broken pipe`)
	assert.ErrorIs(t, err, cause)
	assert.EqualError(t, engine.Failed(t.Context(), "pack", "list", "", "", cause), "pack: list cells: broken pipe")
	assert.EqualError(t, engine.OpenFailed(t.Context(), "pack", fmt.Errorf("try:\n\t%w\r\n\tno\n\tno", stores.Permanent.New("not now"))), "pack: open: try: not now; no")
	assert.Less(t, len(engine.Failed(t.Context(), "pack", "read", strings.Repeat("k", 9999), "", cause).Error()), 200)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = engine.Failed(ended, "pack", "read", "k", "", cause)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, cause)
	err = engine.Failed(ended, "pack", "swap", "k", "", stores.ErrConflict)
	assert.NotErrorIs(t, err, context.Canceled, "a conflict is certain")
	assert.EqualError(t, engine.Failed(ended, "pack", "read", "k", "", context.Canceled), "pack: read k: context canceled")
	web := &url.Error{Op: "Get", URL: "http://h/", Err: context.Canceled}
	assert.EqualError(t, engine.Failed(ended, "pack", "read", "k", "", web), `pack: read k: no answer yet: Get "http://h/": context canceled`)
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	assert.ErrorIs(t, engine.Failed(late, "pack", "read", "k", "", cause), context.DeadlineExceeded)
}

func TestNextVersion(t *testing.T) {
	const last = 1<<63 - 1 // of all versions
	s, seen := new(texts).skeleton(), map[uint64]bool{}
	s.Version = func(uint64) string { return "" }
	for i := range 1000 {
		next, err := s.Swap(t.Context(), fmt.Sprint("k", i), last-1<<32, nil)
		assert.NoError(t, err)
		assert.True(t, next > last-1<<32 && next <= last, next)
		seen[next] = true
	}
	assert.Greater(t, len(seen), 990)
	_, err := s.Swap(t.Context(), "k", last-1<<32+1, nil)
	assert.ErrorIs(t, err, stores.ErrConflict)
}

// The error of a List wraps that of each damaged cell, and names the first ones.
func TestDamaged(t *testing.T) {
	_, err := (&texts{order: []string{"a", "b", "c", "d", "e"}}).skeleton().List(t.Context(), "", "z", 9)
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.Regexp(t, `"a" is damaged: .*; "b" is damaged: .*; "c" is damaged: .*; and 2 more$`, err.Error())
}

// An error that has no kind gets that of its type, and one that has keeps it.
func TestKind(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	refused := stores.Permanent.New("the password is wrong")
	failed := func(err error) error { return engine.Failed(t.Context(), "pack", "read", "k", "", err) }
	for _, tt := range []struct {
		err  error
		want stores.Kind
	}{
		{failed(errors.New("gone")), stores.Unknown},
		{failed(syscall.ENOSPC), stores.Unknown},
		{failed(network), stores.Transient},
		{failed(&net.DNSError{}), stores.Transient},
		{failed(fmt.Errorf("read: %w", io.EOF)), stores.Transient},
		{failed(io.ErrUnexpectedEOF), stores.Transient},
		{failed(net.ErrClosed), stores.Transient},
		{failed(context.Canceled), stores.Transient},
		{failed(context.DeadlineExceeded), stores.Transient},
		{failed(&fs.PathError{Err: syscall.EACCES}), stores.Permanent},
		{engine.OpenFailed(t.Context(), "pack", fs.ErrPermission), stores.Permanent},
		{failed(refused), stores.Permanent},
		{failed(fmt.Errorf("%w: %w", network, refused)), stores.Permanent},
	} {
		assert.Equal(t, tt.want, stores.KindOf(tt.err), "%v", tt.err)
		assert.Equal(t, tt.want != stores.Unknown, errors.Is(tt.err, tt.want), "%v", tt.err)
	}
}
