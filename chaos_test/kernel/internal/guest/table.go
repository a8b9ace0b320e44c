//go:build linux

package guest

import "slices"

// table is the list of all faults: each group stands in a file of its own.
func table() []Fault {
	return slices.Concat(basicFaults(), clockFaults(), processFaults(), copyFaults(), diskFaults(), nfsFaults(), powerCutFaults())
}
