//go:build simulate

package simulation

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeds is how many a test runs. SEEDS in the environment asks for more.
func seeds(t *testing.T) int {
	text := os.Getenv("SEEDS")
	if text == "" {
		if raceEnabled {
			return 500
		}
		return 2000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestIDs finds nothing wrong with the generator.
func TestIDs(t *testing.T) { search(t, issuing, seeds(t)) }

// TestNumbers finds nothing wrong with windows of counted numbers.
func TestNumbers(t *testing.T) { search(t, numbers, 2*seeds(t)) }

// TestReadings finds nothing wrong with the clock.
func TestReadings(t *testing.T) { search(t, readings, seeds(t)) }

// TestSeedRepeats holds every step of a seed against those of a second run with a trace.
func TestSeedRepeats(t *testing.T) {
	for name, p := range map[string]program{"issuing": issuing, "numbers": numbers} {
		hashes := map[uint64]bool{}
		for seed := range uint64(50) {
			r := perform(p, seed, false)
			require.Equal(t, r.hash, perform(p, seed, true).hash, "%s: seed %d", name, seed)
			hashes[r.hash] = true
		}
		assert.Greater(t, len(hashes), 45, "%s: every seed is a schedule of its own", name)
	}
}
