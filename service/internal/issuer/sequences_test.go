package issuer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// world is an issuer whose store waits while the test holds it.
type world struct {
	*testing.T
	*Issuer
	store           *storetest.Memory
	held            atomic.Pointer[held] // operations wait for it; nil: they do not
	deaf            bool                 // operations that wait do not end with their context
	opened, dropped atomic.Int64
	as              *Client      // who asks; nil: anyone
	asked           []chan error // calls that wait
}

// Add counts the sequences that are observed.
func (w *world) Add(*sequence.Sequence) (remove func()) {
	w.opened.Add(1)
	return func() { w.dropped.Add(1) }
}

func (w *world) client() *Client { return cmp.Or(w.as, w.Anyone()) }

type held struct {
	of   string // a sequence; empty: all
	free chan struct{}
}

// hold makes operations of the store wait until free, or until their context ends: all, or those of a sequence.
func (w *world) hold(of string) { w.held.Store(&held{of, make(chan struct{})}) }
func (w *world) free()          { close(w.held.Swap(nil).free) }

// take takes n numbers, and wants the last of them, or a [wire.Code].
func (w *world) take(name string, n int64, want any) {
	w.Helper()
	got, err := w.Number(w.Context(), w.client(), name, n)
	if code, refused := want.(wire.Code); refused {
		assert.Equal(w, code, codeOf(w.T, err), "%s: %v", name, err)
		assert.NotContains(w, err.Error(), "shop")
	} else if assert.NoError(w, err, name) {
		assert.EqualValues(w, want, got.Last, name)
	}
}

// become makes the client of a token the one who asks.
func (w *world) become(token string) {
	var err error
	w.as, err = w.Authenticate(token, false)
	require.NoError(w, err)
}

// begin takes a number while the test goes on.
func (w *world) begin(ctx context.Context, name string) {
	result := make(chan error, 1)
	go func() { _, err := w.Number(ctx, w.client(), name, 1); result <- err }()
	w.asked = append(w.asked, result)
	synctest.Wait()
}

// ends wants all calls that wait to end: with a code, or with wire.Codes if they are served.
func (w *world) ends(want wire.Code) {
	w.Helper()
	for _, result := range w.asked {
		if err := <-result; want == wire.Code(wire.Codes) {
			assert.NoError(w, err)
		} else {
			assert.Equal(w, want, codeOf(w.T, err))
		}
	}
	w.asked = nil
}

// isOpen wants these sequences to be open, and no others.
func (w *world) isOpen(names ...string) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.ElementsMatch(w, names, slices.Collect(maps.Keys(w.sequences)))
}

func (w *world) create(name string, d sequence.Definition) {
	require.NoError(w, sequence.Create(w.Context(), w.store, name, d))
}

func (w *world) delete(name string) {
	_, err := sequence.Delete(w.Context(), w.store, name)
	require.NoError(w, err)
}

// TestSequences: how sequences are opened, forgotten and closed. The rule new- starts from 7, and num-
// ends at 3. At the end each sequence that was opened is dropped, once.
func TestSequences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		run    func(w *world)
	}{
		"a rule, and none": {nil, func(w *world) {
			w.take("new-a", 2, 8)
			w.take("other", 1, wire.NotFound)
			assert.Equal(w, 1, w.Count(), "a name that does not exist takes no place")
			w.delete("new-a")
			_, _, err := w.Last(w.Context(), w.Anyone(), "new-a")
			assert.Equal(w, wire.NotFound, codeOf(w.T, err), "no rule makes a sequence that was deleted")
		}},
		"no store": {func(c *Config) { c.Store = nil }, func(w *world) { w.take("new-a", 1, wire.NotFound) }},
		"periods": {func(c *Config) { c.MaxSequences = 2 }, func(w *world) {
			w.create("new-p", sequence.Definition{Period: sequence.Yearly})
			w.take("new-p", 1, wire.BadInput)
			w.take("new-p.2027", 2, 2)
			w.take("new-p.2028", 1, 1)
			w.take("new-p.2027", 1, 3)
			w.take("new-p.2029", 1, 1)
			w.isOpen("new-p.2027", "new-p.2029")
		}},
		// A rule makes no period that was deleted, and no name that is none of a period.
		"a rule, and periods": {nil, func(w *world) {
			w.create("new-p", sequence.Definition{Mode: sequence.Ordered, Period: sequence.Yearly})
			w.take("new-p.2027", 1, 1)
			w.delete("new-p.2027")
			w.take("new-p.2027", 1, wire.NotFound)
			w.take("new-p.27", 1, wire.NotFound)
			w.take("new-p.2028", 1, 1)
			w.create("new-p.2027", sequence.Definition{Mode: sequence.Ordered})
			w.take("new-p.2027", 1, 2)
		}},
		// The one that was not used for longest makes room, and gives its numbers back.
		"the limit": {func(c *Config) { c.MaxSequences = 2 }, func(w *world) {
			w.take("new-a", 1, 7)
			w.take("new-b", 1, 7)
			w.take("new-a", 1, 8)
			w.take("new-c", 1, 7)
			w.isOpen("new-a", "new-c")
			info, err := sequence.Inspect(w.Context(), w.store, "new-b")
			require.NoError(w, err)
			assert.EqualValues(w, 7, info.Last)
			w.take("absent", 1, wire.NotFound)
			w.isOpen("new-a", "new-c")
			w.take("new-b", 1, 8)
			w.isOpen("new-b", "new-c")
			assert.EqualValues(w, 2, w.evicted.Load())
		}},
		// A sequence with a call that waits is not closed under it, and who finds no room is not told whose it is.
		"the limit, in use": {func(c *Config) {
			c.MaxSequences = 1
			c.Clients = []*Client{named("shop", "a", Rights{Sequences: []string{"*"}}), named("blog", "b", Rights{Sequences: []string{"*"}})}
		}, func(w *world) {
			w.create("a", sequence.Definition{Mode: sequence.Ordered})
			w.become("a")
			w.take("a", 1, 1)
			w.hold("a")
			w.begin(w.Context(), "a")
			w.become("b")
			w.take("new-b", 1, wire.Unavailable)
			w.isOpen("a")
			w.free()
			w.ends(served)
			w.take("new-b", 1, 7)
			w.isOpen("new-b")
		}},
		"closed while one makes room": {func(c *Config) { c.MaxSequences = 1 }, func(w *world) {
			w.take("new-a", 1, 7)
			w.hold("new-a")
			w.begin(w.Context(), "new-b")
			time.AfterFunc(100*time.Millisecond, w.free)
			began := time.Now()
			require.NoError(w, w.Close(w.Context()))
			assert.Equal(w, 100*time.Millisecond, time.Since(began))
			w.ends(wire.Unavailable)
			info, err := sequence.Inspect(w.Context(), w.store, "new-a")
			require.NoError(w, err)
			assert.EqualValues(w, 7, info.Last, "its numbers were given back")
		}},
		// Nobody fills the room of others: the client with the most closes one, or the one at its own bound.
		"the limit, and clients": {func(c *Config) {
			c.MaxSequences = 4
			c.Clients = []*Client{named("a", "a", Rights{Sequences: []string{"*"}}), named("b", "b", Rights{Sequences: []string{"*"}}), named("c", "c", Rights{Sequences: []string{"*"}, MaxSequences: 1})}
		}, func(w *world) {
			as := func(token string, names ...string) {
				w.become(token)
				for _, name := range names {
					w.take(name, 1, 7)
				}
			}
			as("a", "new-a")
			as("c", "new-c1", "new-c2")
			w.isOpen("new-a", "new-c2")
			as("b", "new-b1", "new-b2", "new-b3", "new-b4")
			w.isOpen("new-a", "new-b3", "new-b4", "new-c2")
			as("a", "new-a2")
			w.isOpen("new-a", "new-a2", "new-b4", "new-c2")
			w.SetClients(nil)
			assert.Equal(w, 4, w.Count())
		}},
		// Names that strangers ask for while the store is away do not refuse others for good.
		"the limit while one is being opened": {func(c *Config) { c.MaxSequences = 1 }, func(w *world) {
			w.hold("")
			w.begin(w.Context(), "other")
			began := time.Now()
			w.take("new-a", 1, wire.Unavailable)
			assert.Zero(w, time.Since(began))
			w.free()
			w.ends(wire.NotFound)
			w.take("new-a", 1, 7)
		}},
		"one opens, and one that goes away fails alone": {nil, func(w *world) {
			ctx, leave := context.WithCancel(w.Context())
			w.hold("")
			w.begin(ctx, "new-a")
			first := w.asked
			w.asked = nil
			for range 10 {
				w.begin(w.Context(), "new-a")
			}
			leave()
			assert.Equal(w, wire.Canceled, codeOf(w.T, <-first[0]))
			w.free()
			w.ends(served)
			assert.EqualValues(w, 1, w.opened.Load())
		}},
		// The first request after one of its name was created is answered by that one.
		"deleted": {nil, func(w *world) {
			for want := range 3 {
				w.create("a", sequence.Definition{Mode: sequence.Ordered})
				w.take("a", 1, want+1)
				w.delete("a")
			}
			w.take("a", 1, wire.NotFound)
			w.take("a", 1, wire.NotFound)
			assert.EqualValues(w, 3, w.dropped.Load())
			assert.Zero(w, w.Count())
		}},
		"dropped by a request that had another of that name": {nil, func(w *world) {
			w.take("num-a", 1, 1)
			old := w.sequences["num-a"]
			w.drop(old)
			w.take("num-a", 1, 2)
			w.drop(old)
			w.isOpen("num-a")
		}}, // An operator deleted it: that is no loss of the server.
		"deleted, and closed": {nil, func(w *world) {
			w.take("new-a", 1, 7)
			w.delete("new-a")
			require.NoError(w, w.Close(w.Context()))
		}},
		"closed while the store hangs": {nil, func(w *world) {
			w.deaf = true
			w.hold("")
			w.begin(w.Context(), "new-a")
			require.NoError(w, w.Close(w.Context()))
			w.free()
			w.ends(wire.Unavailable)
			w.take("new-b", 1, wire.Unavailable)
		}},
		"closed among requests": {nil, func(w *world) {
			var callers sync.WaitGroup
			for _, name := range []string{"new-a", "new-b", "new-c", "new-d"} {
				callers.Go(func() {
					err := error(nil)
					for err == nil {
						_, err = w.Number(context.Background(), w.Anyone(), name, 1)
					}
					assert.Equal(w, wire.Unavailable, RefusalOf(err).Code)
				})
			}
			require.NoError(w, w.Close(w.Context()))
			callers.Wait()
		}},
		// The error of Close names the sequences that could not give numbers back, but not thousands.
		"closed with losses": {func(c *Config) { c.MaxSequences = 100 }, func(w *world) {
			for n := range 15 {
				w.take("new-"+string(rune('a'+n)), 1, 7)
			}
			w.store.Fail(storetest.Unavailable)
			err := w.Close(w.Context())
			require.ErrorIs(w, err, sequence.ErrNotGivenBack)
			assert.ErrorContains(w, err, "and 5 more sequences")
			assert.Len(w, err.(interface{ Unwrap() []error }).Unwrap(), maxLosses+1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &world{T: t, store: storetest.NewMemory()}
				w.store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
					if wait := w.held.Load(); wait != nil && strings.HasSuffix(op.Key, wait.of) {
						if w.deaf {
							ctx = context.Background()
						}
						select {
						case <-wait.free:
						case <-ctx.Done():
							return storetest.Unavailable
						}
					}
					return storetest.None
				}
				w.Issuer = newIssuer(t, func(config *Config) {
					config.Store, config.Timeout = w.store, time.Hour
					config.Sequences = []sequence.Option{quiet, sequence.WithTimeout(time.Second)}
					if c.change != nil {
						c.change(config)
					}
				})
				w.observed = w
				c.run(w)
				began := time.Now()
				if !w.closing {
					require.NoError(t, w.Close(t.Context()))
				}
				assert.Less(t, time.Since(began), time.Minute)
				synctest.Wait()
				assert.Equal(t, w.opened.Load(), w.dropped.Load())
			})
		})
	}
}
