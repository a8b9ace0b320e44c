package generator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// orders is what the examples below test. It takes a function, so it knows neither this package nor its
// own tests: gen.NextContext fits, and so does the method Next of a client of the service.
type orders struct {
	nextID func(context.Context) (snowflake.ID, error)
}

func (o orders) place(ctx context.Context) (string, error) {
	id, err := o.nextID(ctx)
	return fmt.Sprintf("order %d", id), err
}

// IDs that are the same in each run: the clock stands until the test moves it.
func Example_fixedIDs() {
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	gen, err := generator.New(generator.WithNode(7), generator.WithClock(clock))
	if err != nil {
		log.Fatal(err)
	}
	o := orders{gen.NextContext}
	fmt.Println(o.place(context.Background()))
	fmt.Println(o.place(context.Background()))
	clock.Advance(time.Second)
	fmt.Println(o.place(context.Background()))
	// Output:
	// order 187173332582428672 <nil>
	// order 187173332582428673 <nil>
	// order 187173336776732672 <nil>
}

// A fake by hand: IDs that count up, and then an error.
func Example_fake() {
	var last snowflake.ID
	o := orders{func(context.Context) (snowflake.ID, error) {
		if last == 2 {
			return 0, generator.ErrNotGranted
		}
		last++
		return last, nil
	}}
	for range 3 {
		fmt.Println(o.place(context.Background()))
	}
	// Output:
	// order 1 <nil>
	// order 2 <nil>
	// order 0 no time granted
}

// A store that fails: IDs go on until the grant ends.
func Example_storeFails() {
	store := storetest.NewMemory()
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	keeper, err := lease.Claim(context.Background(), store, lease.WithClock(clock), lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.Reject())) // else a call waits, by the clock
	if err != nil {
		log.Fatal(err)
	}
	store.Fail(storetest.Unavailable)
	_, err = gen.Next()
	fmt.Println("away:", err)
	clock.Advance(time.Hour)
	_, err = gen.Next()
	fmt.Println("an hour later:", errors.Is(err, generator.ErrNotGranted), "not ready:", gen.Ready(0) != nil, "to be restarted:", gen.Err() != nil)
	fmt.Println("its number is held until it expires:", errors.Is(gen.Close(), lease.ErrNotReleased))
	// Output:
	// away: <nil>
	// an hour later: true not ready: true to be restarted: false
	// its number is held until it expires: true
}

// TestBubble is what the package doc has on testing/synctest.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		gen, err := generator.New(generator.WithNode(7))
		if err != nil {
			t.Fatal(err)
		}
		first, err := orders{gen.NextContext}.place(t.Context())
		if first != "order 132271570944028672" || err != nil {
			t.Fatal(first, err)
		}
	})
}
