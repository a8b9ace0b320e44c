package kernel

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// The subject of a generator that was added tells with each ID how far it is
// ahead of the wall clock.
func TestAddedGenerator(t *testing.T) {
	at, failed := time.Now().Add(time.Hour), errors.New("failed")
	s := added("added", "its New", func() (func() (string, time.Time, error), error) {
		return func() (string, time.Time, error) { return "12", at, failed }, nil
	})
	assert.Equal(t, string(Peers), s.Group)
	source, err := s.Open(t.Context(), subject.Place{})
	require.NoError(t, err)
	id, lead, err := source.Next(t.Context())
	assert.Equal(t, "12", id)
	assert.Greater(t, lead, 59*time.Minute)
	assert.ErrorIs(t, err, failed)
	at = time.Now().Add(-time.Hour)
	_, lead, _ = source.Next(t.Context())
	assert.Zero(t, lead)
}
