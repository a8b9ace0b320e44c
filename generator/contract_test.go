package generator_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// The names and signatures that users rely on. A change that does not compile here breaks
// their programs.
var (
	_ int64        = int64(snowflake.ID(0))
	_ fmt.Stringer = snowflake.ID(0)
	_ interface {
		encoding.TextMarshaler
		json.Marshaler
		driver.Valuer
	} = snowflake.ID(0)
	_ interface {
		encoding.TextUnmarshaler
		json.Unmarshaler
		sql.Scanner
	} = (*snowflake.ID)(nil)
	_ func(string) (snowflake.ID, error) = snowflake.Parse

	_ = snowflake.Layout{Epoch: time.Time{}, Tick: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 12}

	_       func(snowflake.Layout, snowflake.ID) (snowflake.Decoded, error)                  = snowflake.Layout.Decode
	_       func(snowflake.Layout, time.Time, int64, int64) (snowflake.ID, error)            = snowflake.Layout.Compose
	_       func(snowflake.Layout) error                                                     = snowflake.Layout.Validate
	_, _, _ func() snowflake.Layout                                                          = snowflake.Default, snowflake.Twitter, snowflake.JavaScript
	_       func(...monoclock.Option) *monoclock.Clock                                       = monoclock.New
	_       func(*monoclock.Clock) time.Time                                                 = (*monoclock.Clock).Now
	_       func(*monoclock.Clock) time.Duration                                             = (*monoclock.Clock).Drift
	_       func() strategies.Strategy                                                       = strategies.Reject
	_, _    func(time.Duration) strategies.Strategy                                          = strategies.WaitUpTo, strategies.BorrowUpTo
	_       func(...strategies.Strategy) strategies.Strategy                                 = strategies.Chain
	_       func(strategies.Strategy, strategies.Strategy) strategies.Strategy               = strategies.PerCause
	_       func(context.Context, string) (stores.Store, error)                              = stores.Open
	_       func(context.Context, stores.Store, ...lease.Option) (*lease.Keeper, error)      = lease.Claim
	_       func(context.Context, string, ...generator.Option) (*generator.Generator, error) = generator.Open
	_       func(...generator.Option) (*generator.Generator, error)                          = generator.New

	_ func(int64) generator.Option                    = generator.WithNode
	_ func(snowflake.Layout) generator.Option         = generator.WithLayout
	_ func(monoclock.Interface) generator.Option      = generator.WithClock
	_ func(strategies.Strategy) generator.Option      = generator.WithStrategy
	_ func(strategies.SequenceStart) generator.Option = generator.WithSequenceStart
	_ func(*lease.Keeper) generator.Option            = generator.WithLease

	_ func(*generator.Generator) (snowflake.ID, error)                  = (*generator.Generator).Next
	_ func(*generator.Generator, context.Context) (snowflake.ID, error) = (*generator.Generator).NextContext
	_ func(*generator.Generator, []snowflake.ID) (int, error)           = (*generator.Generator).NextN
	_ func(*generator.Generator) *generator.Stream                      = (*generator.Generator).Stream
	_ func(*generator.Stream) (snowflake.ID, error)                     = (*generator.Stream).Next
	_ func(*generator.Generator) generator.Stats                        = (*generator.Generator).Stats
	_ func(*generator.Generator, context.Context) error                 = (*generator.Generator).Restored
	_ func(*generator.Generator) error                                  = (*generator.Generator).Close
)

// The public contract in use: a program that needs one call, and one that has its store
// and its lease at hand.
func Example_contract() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tickflake")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	gen, err := generator.Open(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	first, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	if err := gen.Close(); err != nil {
		log.Fatal(err)
	}

	store, err := stores.Open(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	gen, err = generator.New(generator.WithLease(keeper),
		generator.WithStrategy(strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second))))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
	if err := gen.Restored(ctx); err != nil { // as after a snapshot: claims another number
		log.Fatal(err)
	}
	ids := make([]snowflake.ID, 3)
	if _, err := gen.NextN(ids); err != nil {
		log.Fatal(err)
	}
	last, err := gen.Stream().Next()
	if err != nil {
		log.Fatal(err)
	}
	parts, err := snowflake.Default().Decode(last)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first < ids[0], ids[2] < last, parts.Node == gen.Node(), gen.Stats().Granted > 0)
	// Output: true true true true
}
