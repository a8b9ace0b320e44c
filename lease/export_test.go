package lease

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// What the simulation of a fleet sees and replaces of a keeper. It is in a package of its
// own, since it runs generators, which import this package.

// NewKeeper makes a keeper that has claimed nothing yet.
func NewKeeper(store stores.Store, options []Option) (*Keeper, error) {
	return newKeeper(context.Background(), store, options)
}

// Hook replaces what is left to chance, and the end of the goroutine.
func (k *Keeper) Hook(random func() string, cancel func()) {
	k.random, k.cancel = random, cancel
	if k.machine.Held().Version == 0 {
		k.machine = grant.New(k.machine.Config, random())
	}
}

func (k *Keeper) Poll(ctx context.Context) (next time.Duration, err error) { return k.polled(ctx) }

func (k *Keeper) ClaimFirst(ctx context.Context) error { return k.claimFirst(ctx) }
func (k *Keeper) SealNow()                             { k.seal() }
func (k *Keeper) Distrust()                            { k.distrust(true) }
func (k *Keeper) Window() *window.Ticks                { return k.window }
func (k *Keeper) Held() grant.Held                     { return k.machine.Held() }
func (k *Keeper) Free() bool                           { return k.turn.Free() }
func (k *Keeper) Used() window.Range                   { return k.used }

// ReleaseNow is [Keeper.CloseContext], called once, without a goroutine.
func (k *Keeper) ReleaseNow(ctx context.Context) error {
	k.seal()
	k.cancel()
	return k.release(ctx)
}

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
