package cases

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

func open(t *testing.T, c Case) Source {
	s, err := c.Open(t.Context())
	require.NoError(t, err)
	if s.Close != nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s
}

func everyCase() []Case {
	return slices.Concat(Ours(), Counted(), Peers(), []Case{Fleet(), Floor(), SharedFloor(), AddFloor(), SwapFloor(), EmptyLoop()})
}

// The widths that the table shows are those of the types.
func TestBitsOfPeers(t *testing.T) {
	bits := map[string]int{
		"rs/xid": len(xid.ID{}), "MongoDB ObjectID": len(bson.ObjectID{}), "oklog/ulid": len(ulid.ULID{}),
		"segmentio/ksuid": len(ksuid.KSUID{}), "google/uuid v4": len(google.UUID{}), "google/uuid v7": len(google.UUID{}), "gofrs/uuid v7": len(gofrs.UUID{}),
	}
	for _, c := range Peers() {
		if bytes, ok := bits[c.Name]; ok {
			assert.Equal(t, 8*bytes, c.Bits, c.Name)
		} else {
			assert.Equal(t, 64, c.Bits, c.Name)
		}
	}
}

func TestLoopsIssue(t *testing.T) {
	for _, c := range everyCase() {
		t.Run(c.Name, func(t *testing.T) {
			s := open(t, c)
			unit := max(c.Unit, 1)
			for _, n := range []int{0, unit, 3 * unit} {
				require.NoError(t, s.Loop()(n))
			}
			require.NoError(t, Together(s.Loops(3)...)(12*unit))
		})
	}
}

// still is a clock that stands still, so that every slot that was taken can be counted.
type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

func TestLoopsOfOursIssueAsManyAsTheyAreTold(t *testing.T) {
	const n = 3 * 1024
	for name, test := range map[string]struct {
		loop    func(*generator.Generator) Loop
		skipped int64 // slots that may be left over
	}{
		"next":    {loopNext, 0},
		"context": {loopContext, 0},
		"batches": {loopBatches(1024), 0},
		"stream":  {loopStream, n / 2},
		"all":     {loopAll, n / 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := generator.New(generator.WithNode(0), generator.WithLayout(Wide()), generator.WithClock(still(time.Now())))
			require.NoError(t, err)
			require.NoError(t, test.loop(g)(n))
			id, err := g.Next()
			require.NoError(t, err)
			after, err := g.Layout().Decode(id)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, after.Sequence, int64(n))
			assert.LessOrEqual(t, after.Sequence, n+test.skipped)
		})
	}
}

func TestLoopsOfSequencesIssueAsManyAsTheyAreTold(t *testing.T) {
	const n = 3 * 1000
	for name, loop := range map[string]func(*sequence.Sequence) Loop{"next": loopNumber, "batches": loopNumbers(1000)} {
		t.Run(name, func(t *testing.T) {
			s, err := sequence.Open(t.Context(), storetest.NewMemory(), "orders", sequence.WithDefinition(sequence.Definition{Start: 1}))
			require.NoError(t, err)
			require.NoError(t, loop(s)(n))
			assert.EqualValues(t, n, s.Stats().Issued)
			require.NoError(t, s.Close())
		})
	}
}

func TestLoopsOfOthersIssueAsManyAsTheyAreTold(t *testing.T) {
	const n = 1000
	for name, test := range map[string]struct {
		Case
		count func() uint32 // of IDs so far, in 24 bits
	}{
		"xid":      {XID(), func() uint32 { id := xid.New(); return binary.BigEndian.Uint32(id[8:12]) & 0xffffff }},
		"objectID": {ObjectID(), func() uint32 { id := bson.NewObjectID(); return binary.BigEndian.Uint32(id[8:12]) & 0xffffff }},
	} {
		before := test.count()
		require.NoError(t, open(t, test.Case).Loop()(n))
		assert.Equal(t, uint32(n+1), (test.count()-before)&0xffffff, name)
	}
}

// The loops share out all IDs, and Together returns their errors.
func TestTogether(t *testing.T) {
	var sum atomic.Int64
	count := func(n int) error {
		sum.Add(int64(n))
		return nil
	}
	require.NoError(t, Together(count, count, count)(11))
	assert.EqualValues(t, 11, sum.Load())

	failed := errors.New("failed")
	require.ErrorIs(t, Together(count, func(int) error { return failed })(2), failed)
}

// The package variables of bwmarrin/snowflake are as before, also those that NewNode
// computes from them.
func TestBwmarrinWideLeavesOthersAlone(t *testing.T) {
	wide := open(t, BwmarrinWide())
	require.NoError(t, wide.Loop()(1))
	assert.EqualValues(t, 10, snowflake.NodeBits)
	assert.EqualValues(t, 12, snowflake.StepBits)
	assert.EqualValues(t, 3, snowflake.ID(3<<12).Node())
	node, err := snowflake.NewNode(1023)
	require.NoError(t, err)
	assert.EqualValues(t, 1023, node.Generate().Node())
}

func TestLimit(t *testing.T) {
	ms := Limit{IDs: 4096, Per: time.Millisecond}
	assert.InDelta(t, 244.14, ms.NanosecondsPerID(), 0.01)
	assert.True(t, ms.Binds())
	assert.Equal(t, 4096+8, ms.LeadIn(8))
	assert.Equal(t, "4,096 per 1ms", ms.String())
	assert.True(t, Limit{IDs: 1 << 16, Per: 4 * time.Millisecond}.Binds(), "61 ns, for which a fast machine waits")
	for _, l := range []Limit{{}, counter24, Next("", Wide()).Limit, {IDs: 1, Per: time.Second, Repeats: true}, {IDs: 1, Per: time.Second, Ahead: true}} {
		assert.False(t, l.Binds(), l)
		assert.Zero(t, l.LeadIn(8), l)
	}
	assert.Equal(t, "none", Limit{}.String())
}

// A tick of sonyflake holds as many IDs as the limit says: in a bubble, it ends when they
// are used up. A generator that spins until then would never leave the bubble.
func TestLimitOfSonyflake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour) // a bubble begins in 2000, before the epoch
		c := Sonyflake()
		loop := open(t, c).Loop()
		began := time.Now()
		require.NoError(t, loop(c.Limit.IDs))
		require.Zero(t, time.Since(began))
		require.NoError(t, loop(1))
		require.Positive(t, time.Since(began))
	})
}
