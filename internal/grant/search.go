package grant

// Search says which node numbers a claim reads. It reads blocks of numbers, from a random
// block on, until it finds a free number, so a claim among millions reads few.
type Search struct {
	Nodes int64 // how many node numbers there are
	First int64 // the number that it began with
	Done  int64 // how many numbers it has read
	block int64 // the length of the next block, if it is not the first
}

const (
	firstBlock = 256
	lastBlock  = 4096
	// enough is how many numbers are read before a claim takes one whose holder may be
	// alive, or whose limit is ahead of the clock.
	enough = 4096
)

// NewSearch begins at a block that pick chooses.
func NewSearch(nodes int64, pick uint64) Search {
	return Search{Nodes: nodes, First: int64(pick%uint64(nodes)) / firstBlock * firstBlock}
}

// Block returns the next block: n numbers from one on.
func (p *Search) Block() (from, n int64) {
	from = (p.First + p.Done) % p.Nodes
	n = min(max(p.block, firstBlock), p.Nodes-p.Done, p.Nodes-from)
	p.Done += n
	p.block = min(2*max(p.block, firstBlock), lastBlock)
	return from, n
}

// Settled reports whether no further block is needed, if the best candidate so far has this
// rank.
func (p *Search) Settled(rank Rank) bool {
	return rank == Ready || p.Done >= p.Nodes || rank != NoRank && p.Done >= enough
}
