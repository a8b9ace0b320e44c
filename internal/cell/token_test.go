package cell

import (
	"crypto/rand"
	"encoding/hex"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// zeros is the random state of a copied machine: all copies read the same.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestTokensOfCopies: two copies of a machine draw the same random bytes.
func TestTokensOfCopies(t *testing.T) {
	system := rand.Reader
	t.Cleanup(func() { rand.Reader = system })
	rand.Reader = zeros{}
	seen := map[string]bool{}
	for range 1000 {
		token := Token()
		b, err := hex.DecodeString(token)
		require.NoError(t, err)
		require.Len(t, b, 12)
		seen[token] = true
	}
	assert.Len(t, seen, 1000)
}

// TestTokensAtOneInstant: a clock that stands still leaves the random bytes.
func TestTokensAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.NotEqual(t, Token(), Token())
	})
}
