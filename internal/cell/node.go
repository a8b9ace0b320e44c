package cell

import (
	"fmt"
	"strconv"
	"strings"
)

// NodesFrom and NodesTo are the range of the keys of node numbers.
const (
	NodesFrom = "node/"
	NodesTo   = "node0"
)

// MaxNodes is how many node numbers have keys. Their digits sort in the order of the
// numbers.
const MaxNodes = 1 << 22

// NodeKey is the key of the cell of a node number.
func NodeKey(node int64) string { return fmt.Sprintf(NodesFrom+"%07d", node) }

// NodeOf is the node number of a key, or false if the key is not that of a node number.
func NodeOf(key string) (node int64, ok bool) {
	digits, ok := strings.CutPrefix(key, NodesFrom)
	n, err := strconv.ParseUint(digits, 10, 64)
	return int64(n), ok && err == nil && len(digits) == 7 && n < MaxNodes
}

// Node is the value of the cell of a node number. All its times are in ticks of its layout.
type Node struct {
	Format int `json:"format"`
	// Holder is the token of the keeper that holds the cell, or empty if it was released.
	// Owner describes the holder to people.
	Holder string `json:"holder,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Floor is where the last claim began: at or above the limit at that time.
	Floor uint64 `json:"floor,omitempty"`
	// Limit is the first tick that is granted to no process yet. Until is the same as a
	// text for people.
	Limit uint64 `json:"limit"`
	Until string `json:"until,omitempty"`
	// Window is the length of the holder's grants, in ticks.
	Window uint64 `json:"window,omitempty"`
	// Reserved: no process may claim the cell before Limit.
	Reserved bool `json:"reserved,omitempty"`
	// MovedTo is the name of the store that the number has left to, for good: the cell is final. Floor and
	// Limit are then where the number begins there.
	MovedTo string `json:"moved_to,omitempty"`
	// Later: the limit was far ahead of the clock when the number left, so it begins later there than others.
	Later bool `json:"later,omitempty"`
	// Past says that the number was given to the past, for good. Floor and Limit are then the end of time.
	Past Past `json:"past,omitempty"`
	// Write is the name of this write. It is new and random, so that the writer recognizes
	// its own write, and a copy of the writer's memory does not take it for its own.
	Write string `json:"write"`
	// Last has the names of the writes before this one, the newest first: see [Node.Names].
	Last []string `json:"last,omitempty"`
	// Layout is the layout of all IDs of the fleet.
	Layout string `json:"layout"`
}

// Names returns the names of the last writes of the cell, the newest first and at most [Kept]: the
// next write has them as its Last. The zero Node, that of no cell, has none.
func (n Node) Names() []string { return names(n.Write, n.Last) }

// Encode returns the value of the cell.
func (n Node) Encode() []byte {
	n.Format = Format
	return encode(&n, &n.Last)
}

// maxWindow bounds the window of a cell that was read, so that sums do not overflow.
const maxWindow = 1 << 40

// DecodeNode reads the value of the cell of a node number. The error wraps [stores.ErrDamaged]: also
// for numbers that this library never writes, as when a cell was edited by hand.
func DecodeNode(value []byte) (Node, error) {
	var n Node
	if err := DecodeJSON(value, Format, &n); err != nil {
		return Node{}, err
	}
	if err := checkNames(n.Write, n.Last); err != nil {
		return Node{}, err
	}
	layout, err := ParseLayout(n.Layout)
	switch {
	case err != nil:
		return Node{}, err
	case n.Limit > 1<<layout.TimeBits:
		return Node{}, Damaged("its limit is tick %d, and the time of its layout ends at tick %d; it was edited by hand", n.Limit, uint64(1)<<layout.TimeBits)
	case n.Floor > n.Limit:
		return Node{}, Damaged("its floor is tick %d, above its limit, tick %d; it was edited by hand", n.Floor, n.Limit)
	}
	switch n.Past {
	case "":
	case Given, Retired:
		if n.Limit < 1<<layout.TimeBits || n.Holder != "" {
			return Node{}, Damaged("it was given to the past, and its limit is tick %d; it was edited by hand", n.Limit)
		}
	default:
		return Node{}, Damaged("its past is %.20q; it was edited by hand", n.Past)
	}
	n.Window = min(n.Window, maxWindow)
	return n, nil
}
