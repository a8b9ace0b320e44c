package ways

import "slices"

// repeats returns how many of the IDs there are a second time, or more often, and sorts
// them.
func repeats(ids []int64) int {
	slices.Sort(ids)
	n := 0
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			n++
		}
	}
	return n
}
