package grant

import (
	"errors"

	"github.com/tickflake/tickflake/internal/cell"
)

// A number that is given to the past issues IDs for old rows, of their own time. Its sequence field is divided
// into lanes, and time into buckets. A process that meets a bucket draws the bucket's next lane, a counted number
// that no one gets again, and counts the slots of each tick in it. These rules keep its IDs apart from those of
// processes that claim numbers, and from each other:
//
//	P1. A number is given only if its cell was never written, and only in a fleet without a floor: below a
//	    floor another store has stamped it. Else the operator says that it was never used.
//	P2. What its lanes and buckets are is written first, in a cell of its own, and never changes.
//	P3. Its cell then holds the end of time, by compare-and-swap: no claim begins there.
//	P4. A lane is drawn only if its write is known to have landed. One of unknown outcome is given up, unless its name
//	    is read in the cell: see package count.
//	P5. When it leaves for another store, it stays behind: its lanes are counted here, and in the other store its
//	    cell keeps the end of time.
//	P6. After a restore, or when a cell was deleted, "never written" proves nothing, and lanes are drawn again. So past
//	    numbers are retired before a process reaches the store, a raise that meets one retires it, and
//	    none is given any more unless the operator says that it was never used.
//	P7. The mark is neither a holder nor a reservation: no claim takes the number, a pinned one neither.

// Why a number cannot be given to the past.
var (
	ErrWritten = errors.New("its cell was written before: IDs may have been issued with it")
	ErrFloor   = errors.New("the fleet has a floor: below it, another store may have issued IDs with it")
	ErrRewound = errors.New("a past number of this store was retired, or its cell deleted: an older state of the store may have issued IDs with it")
)

// Give returns the cell of a number that is given to the past, and has this cell. rewound says that the
// store shows signs of (P6), and unused is the operator's word that the number was never used. name is that of the write.
func Give(was Cell, f Fleet, end uint64, rewound, unused bool, name, layout string) (cell.Node, error) {
	switch {
	case was.Damaged || was.Version != 0: // (P1)
		return cell.Node{}, ErrWritten
	case f.Floor > 0 && !unused: // (P1)
		return cell.Node{}, ErrFloor
	case rewound && !unused: // (P6)
		return cell.Node{}, ErrRewound
	}
	return cell.Node{Floor: end, Limit: end, Past: cell.Given, Write: name, Layout: layout}, nil // (P3)
}

// Retire returns the cell of a number with which no ID is issued any more, by a process or for the past.
func Retire(r cell.Node, end uint64) cell.Node {
	r.Holder, r.Owner, r.Reserved, r.Past = "", "", false, cell.Retired
	r.Floor, r.Limit = end, end
	return r
}
