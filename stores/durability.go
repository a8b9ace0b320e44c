package stores

import "context"

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

// CheckDurability asks the engine of a store for its settings. Callers with their own clients, instead of a URL
// for [Open], call it once before they use the store.
//
// An engine that reports no settings gets a Read, to check that it answers. A result without sentences is no
// proof: a client cannot see whether a disk keeps its writes, or which server takes over in a failover. Give
// ctx a deadline: it returns at most 0.1 seconds after ctx ends. The error says that the server does not
// answer, or refuses.
func CheckDurability(ctx context.Context, store Store) (Durability, error) {
	if ask := store.Traits().Durability; ask != nil {
		return ask(ctx)
	}
	_, err := store.Read(ctx, "probe")
	return Durability{}, err
}
