package lease

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// What tests see and replace of a keeper. They are in a package of their own, since they run generators, which import
// this package.

// Hook replaces what is left to chance.
func (k *Keeper) Hook(random func() string) { k.random = random }

func (k *Keeper) Poll(ctx context.Context) (next time.Duration, err error) { return k.polled(ctx) }

func (k *Keeper) ClaimFirst(ctx context.Context) error { return k.claimFirst(ctx) }
func (k *Keeper) Distrust()                            { k.distrust(true) }
func (k *Keeper) Window() *window.Ticks                { return k.window }
func (k *Keeper) Held() grant.Held                     { return k.machine.Held() }
func (k *Keeper) Free() bool                           { return k.turn.Free() }

// Clone returns a keeper with a copy of k's memory, as a snapshot that is restored beside
// its original has, on a store of its own.
func (k *Keeper) Clone(store stores.Store, options []Option) (*Keeper, error) {
	c, err := newKeeper(context.Background(), store, options)
	if err != nil {
		return nil, err
	}
	c.machine = k.machine
	c.stats.Claims = 1
	c.due, c.used, c.given = k.due, k.used, k.given
	c.window.Grant(window.Range{Node: k.used.Node, From: max(k.used.From, k.window.Used()), To: k.used.To}, k.used.To)
	return c, nil
}
