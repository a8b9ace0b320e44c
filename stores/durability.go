package stores

import "context"

// Durability is what an engine says about writes that it has acknowledged.
type Durability struct {
	// Forgets has one sentence for each setting with which acknowledged writes are
	// lost when the server is killed and started again: the setting, its value, and
	// what to set.
	Forgets []string
	// Risks has one sentence for each setting with which they are lost in rarer
	// events, such as a failover or a power cut of several machines.
	Risks []string
	// Unknown has one sentence for each setting that the server does not tell, as many
	// rented ones do not.
	Unknown []string
}

// DurabilityChecker is a [Store] whose engine can be asked what it promises. Its error
// is that of a server that does not answer.
type DurabilityChecker interface {
	Store
	Durability(ctx context.Context) (Durability, error)
}
