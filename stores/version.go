package stores

import "math/rand/v2"

// LastVersion is the greatest version from which [NextVersion] makes another. An engine
// answers a Swap from a greater one with [ErrConflict]: no cell has such a version.
const LastVersion = 1<<63 - 1 - versionStep

// versionStep is the greatest difference between a version of a cell and the next one.
// Random steps of up to 2³² leave room for about 2³² writes to each cell.
const versionStep = 1 << 32

// NextVersion returns a version for the value that replaces one of version old, which is
// at most [LastVersion]. It is greater than old by a random step from 1 to 2³².
//
// A store that was restored from a backup takes other writes in the place of those that
// it lost. A version that only counts up would give both the same versions, and a Swap
// by a process that saw a lost write would change a cell that it has never seen.
func NextVersion(old uint64) uint64 { return old + 1 + rand.Uint64N(versionStep) }
