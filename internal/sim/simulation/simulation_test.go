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
		return 2000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestLate finds nothing wrong with a seal amid which a slot is added: too few seeds of TestIDs have one.
func TestLate(t *testing.T) { search(t, late, seeds(t)) }

// TestIDs finds nothing wrong with the generator, also when callers are held up before they add.
func TestIDs(t *testing.T) {
	met := search(t, issuing, 4*seeds(t))
	t.Logf("held up between the look and the addition: %v", met)
	for _, what := range []string{"the end of the tick", "a step back", "a change", "the seal"} {
		assert.NotZero(t, met[what], what)
	}
}

// TestNumbers finds nothing wrong with windows of counted numbers.
func TestNumbers(t *testing.T) { search(t, numbers, 2*seeds(t)) }

// TestReadings finds nothing wrong with the clock.
func TestReadings(t *testing.T) { search(t, readings, seeds(t)) }
