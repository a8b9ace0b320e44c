package engine

import (
	"fmt"
	"math/rand/v2"

	"github.com/tickflake/tickflake/stores"
)

// versionStep is the greatest difference between a version of a cell and the next one.
// Random steps of up to 2³² leave room for about 2³² writes to each cell.
const versionStep = 1 << 32

// nextVersion checks the arguments of a Swap, and returns the version of the new value: a
// random step from 1 to 2³² above version, and below 2⁶³.
//
// The error is that of [stores.CheckKey] or [stores.CheckValue], or wraps [stores.ErrConflict] if the version is
// too great for any cell.
//
// A store that was restored from a backup gets new writes in place of the lost ones. If
// versions only counted up, a new write and a lost one would have the same version, and a
// Swap by a process that saw the lost write would change a cell that it has never seen.
func nextVersion(key string, version uint64, value []byte) (uint64, error) {
	if err := stores.CheckKey(key); err != nil {
		return 0, err
	}
	if err := stores.CheckValue(value); err != nil {
		return 0, err
	}
	if version > 1<<63-1-versionStep {
		return 0, fmt.Errorf("%w: no cell has the version %d", stores.ErrConflict, version)
	}
	return version + 1 + rand.Uint64N(versionStep), nil
}
