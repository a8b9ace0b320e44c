package stores

import (
	"context"
	"time"
)

// Durability describes the settings of an engine that can lose acknowledged writes. Each
// sentence names a setting, its value, the effect, and the value to set.
type Durability struct {
	// Forgets is about settings with which acknowledged writes are lost when the process
	// of the server is killed and started again, on a machine that goes on running, or
	// even while the server runs. [Open] refuses such a store.
	Forgets []string

	// Risks has the settings with which they are lost in rarer events: when the machine
	// of the server loses power or its kernel crashes, when the disk is too slow, or in a
	// failover.
	Risks []string

	// Unknown has the settings that the server does not report, as with many rented
	// servers.
	Unknown []string
}

// DurabilityChecker is a [Store] whose engine reports its settings. The error of
// Durability says that the server does not answer. It is safe for use by several
// goroutines at once.
type DurabilityChecker interface {
	Store
	Durability(ctx context.Context) (Durability, error)
}

// CheckDurability asks the engine of a store for its settings. Callers with their own
// clients, instead of a URL for [Open], call it once before they use the store.
//
// An engine that reports no settings gets a Read, to check that it answers. A result
// without sentences is no proof: a client cannot see whether a disk keeps its writes, or
// which server takes over in a failover. It returns soon after ctx ends. The error says that
// the server does not answer, or refuses.
func CheckDurability(ctx context.Context, store Store) (Durability, error) {
	if checker, ok := store.(DurabilityChecker); ok {
		return checker.Durability(ctx)
	}
	_, err := store.Read(ctx, "probe")
	return Durability{}, err
}

// Prober is a [Store] that can prove by writes that its server keeps the promises of a Store, which some
// servers of its protocol break under load. It is proved before the first process of a fleet writes, before a
// sequence is created, and by "tickflake store check"; [Probe] does it. The error is [Refused] if
// the server breaks one. It is safe for use by several goroutines at once.
type Prober interface {
	Store
	Probe(ctx context.Context) error
}

// Probe proves a store if it is a [Prober], and else returns nil.
func Probe(ctx context.Context, store Store) error {
	if prober, ok := store.(Prober); ok {
		return prober.Probe(ctx)
	}
	return nil
}

// Windower is a [Store] whose writes are dear: Window is the length of the grants of a lease that was given
// no other, above 0.
type Windower interface {
	Store
	Window() time.Duration
}
