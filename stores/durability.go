package stores

import "context"

// Durability is what an engine tells about writes that it has acknowledged. Each sentence
// names a setting, its value, what that leads to, and what to set.
type Durability struct {
	// Forgets is about settings with which acknowledged writes are lost when the process
	// of the server is killed and started again, on a machine that goes on running, or
	// even while the server runs. [Open] refuses such a store.
	Forgets []string

	// Risks is about settings with which they are lost in rarer events: when the machine
	// of the server loses power or its kernel crashes, when the disk is too slow, or in a
	// failover.
	Risks []string

	// Unknown is about settings that the server does not tell, as many rented servers do
	// not.
	Unknown []string
}

// DurabilityChecker is a [Store] whose engine can be asked what it promises. The error of
// Durability is that of a server that does not answer. It is safe for use by several
// goroutines at once.
type DurabilityChecker interface {
	Store
	Durability(ctx context.Context) (Durability, error)
}

// CheckDurability asks the engine of a store what it promises. Callers who bring clients
// of their own, instead of a URL to [Open], call it once before they use the store.
//
// An engine that has nothing to tell is sent a Read, to see that it answers. No sentence
// at all is no proof: nothing tells from outside what a disk does, or which server takes
// over when one fails. The error is that of a server that does not answer.
func CheckDurability(ctx context.Context, store Store) (Durability, error) {
	if checker, ok := store.(DurabilityChecker); ok {
		return checker.Durability(ctx)
	}
	_, err := store.Read(ctx, "probe")
	return Durability{}, err
}
