package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// answering is a store that answers with an error, and counts its calls.
type answering struct {
	stores.Store
	err   error // nil: it works
	calls int
}

func (s *answering) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if s.calls++; s.err != nil {
		return nil, s.err
	}
	return s.Store.List(ctx, from, to, limit)
}

func (s *answering) Read(ctx context.Context, key string) (stores.Cell, error) {
	if s.calls++; s.err != nil {
		return stores.Cell{}, s.err
	}
	return s.Store.Read(ctx, key)
}

func (s *answering) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if s.calls++; s.err != nil {
		return 0, s.err
	}
	return s.Store.Swap(ctx, key, version, value)
}

var (
	errRefused = fmt.Errorf("%w: WRONGTYPE", stores.Refusal("use another namespace"))
	errAway    = errors.New("connection refused")
)

// A claim ends at once if the store refuses, however much time its context has.
func TestRefusedClaimEndsAtOnce(t *testing.T) {
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	clock := clocktest.NewVirtual(noon)
	for name, claim := range map[string]func(*answering) error{
		"claim": func(s *answering) error {
			s.err = errRefused
			_, err := lease.Claim(long, s, quiet(clock)...)
			return err
		},
		"restored": func(s *answering) error {
			k := claim(t, s, clock)
			t.Cleanup(func() { s.err = nil })
			s.err, s.calls = errRefused, 0
			return k.Restored(long)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &answering{Store: storetest.NewMemory()}
			err := claim(s)
			require.ErrorIs(t, err, stores.ErrRefused)
			require.ErrorIs(t, err, lease.ErrStore)
			require.EqualError(t, err, "store refuses: read layout: use another namespace: WRONGTYPE")
			require.Equal(t, 1, s.calls)
		})
	}
}

// The log has a line when the kind of the errors changes, and not for each failure. The keeper
// tries again, and works when the store does.
func TestLogSaysTheKind(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	s := &answering{Store: memory.Client()}
	var log bytes.Buffer
	k := claim(t, s, clock, logTo(&log))
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	next := lease.DefaultWindow / 3
	fail := func(err error, tries int) {
		s.err = err
		for range tries {
			clock.Advance(next)
			next = first(k.Poll(t.Context()))
		}
	}
	lines := func(message string) (kinds []string) {
		for _, found := range regexp.MustCompile(`msg="lease: `+message+`.*? kind=(\S+)`).FindAllStringSubmatch(log.String(), -1) {
			kinds = append(kinds, strings.Trim(found[1], `"`))
		}
		return kinds
	}
	fail(errAway, 1)
	fail(errRefused, 1)
	fail(errAway, 1)
	fail(errRefused, 20)
	require.Equal(t, []string{"passing", "refused", "passing", "refused"}, lines("not extended yet"), "%s", log.String())
	require.Equal(t, []string{"refused"}, lines("grant ended"), "%s", log.String())
	require.Contains(t, k.Err().Error(), "store refuses since ")
	_, err = gen.Next()
	granted, ok := errors.AsType[*generator.GrantError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, stores.Refused, granted.Kind())
	require.Zero(t, granted.Waited)
	fail(stores.ErrOverloaded, 1)
	require.Regexp(t, "^this process gets too little processor time since .*: read node/", k.Err())

	fail(nil, 2)
	require.NoError(t, k.Err())
	_, err = gen.Next()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "lease: recovered"))

	restore := memory.Snapshot()
	fail(nil, 60)
	restore()
	fail(nil, 20)
	require.Equal(t, []string{"loss"}, lines("store went back"), "%s", log.String())
}

// A claim that waits logs the reason once, and not at each try.
func TestWaitingClaimSaysTheKindOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	s := &answering{Store: storetest.NewMemory(), err: errAway}
	var log bytes.Buffer
	tries := 0
	clock := monoclock.New()
	_, err := lease.Claim(ctx, hook{s, func() {
		if tries++; tries == 4 {
			cancel()
		}
	}}, quiet(clock, logTo(&log), lease.WithWindow(time.Second))...)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, strings.Count(log.String(), "lease: waiting for a node number\" kind=passing"), "%s", log.String())
}

// hook is a store that calls a function before each Read.
type hook struct {
	stores.Store
	before func()
}

func (h hook) Read(ctx context.Context, key string) (stores.Cell, error) {
	h.before()
	return h.Store.Read(ctx, key)
}

// Many damaged cells are logged once, and not again by each claim.
func TestManyDamagedCellsAreLoggedOnce(t *testing.T) {
	clock := monoclock.New()
	memory := storetest.NewMemory()
	for node := range int64(1) << snowflake.Default().NodeBits {
		_, err := memory.Swap(t.Context(), cell.NodeKey(node), 0, []byte("rubbish"))
		require.NoError(t, err)
	}
	var log bytes.Buffer
	s := &answering{Store: memory}
	ctx, cancel := context.WithCancel(t.Context())
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	tries := 0
	_, err := lease.Claim(ctx, hook{s, func() {
		if tries++; tries == 4 {
			cancel()
		}
	}}, quiet(clock, logTo(&log), lease.WithWindow(time.Second))...)
	require.ErrorIs(t, err, context.Canceled)
	require.Greater(t, tries, 3)
	assert.Equal(t, 64, strings.Count(log.String(), "level=ERROR"))
}

// List reads a read-only store: the limits tell which numbers are held.
func TestInspectWithoutTheRightToWrite(t *testing.T) {
	clock := clocktest.NewVirtual(time.Now())
	memory := storetest.NewMemory()
	claim(t, memory.Client(), clock)
	damaged := &stores.DamagedError{Problem: "its file cannot be used", Err: errAway}
	for err, want := range map[error]lease.State{
		errRefused:                                lease.Held,
		&stores.DamagedError{Err: errRefused}:     lease.Held,
		fmt.Errorf("lock: %w", damaged):           lease.Damaged,
		fmt.Errorf("%w: it is", stores.ErrLocked): lease.Held,
	} {
		all, problem := lease.List(t.Context(), unlockable{memory, err})
		require.NoError(t, problem)
		require.Len(t, all, 1)
		require.Equal(t, want, all[0].State, "%v", err)
	}
	_, err := lease.List(t.Context(), unlockable{memory, errAway})
	require.ErrorIs(t, err, lease.ErrStore)
}

// unlockable is a store whose locks fail.
type unlockable struct {
	*storetest.Memory
	err error
}

func (s unlockable) TryLock(context.Context, string) (func(), error) { return nil, s.err }

func TestKinds(t *testing.T) {
	for want, errs := range map[stores.Kind][]error{
		stores.Passing: {nil, errAway, lease.ErrStore, lease.ErrHeld, &lease.NoFreeNodeError{}, stores.ErrConflict, context.DeadlineExceeded},
		stores.Refused: {lease.ErrSkew, lease.ErrEndOfTime, lease.ErrLost, stores.ErrForgets, stores.ErrRefused,
			&lease.LayoutMismatchError{}, &stores.OptionError{Err: errAway}, fmt.Errorf("%w: %w", context.DeadlineExceeded, errRefused)},
		stores.Loss: {stores.ErrWentBack, stores.ErrDamaged, &stores.DamagedError{Err: errRefused}},
	} {
		for _, err := range errs {
			assert.Equal(t, want, stores.KindOf(err), "%v", err)
		}
	}
	assert.Equal(t, "refused", stores.Refused.String())
	assert.Equal(t, "Kind(9)", stores.Kind(9).String())
}
