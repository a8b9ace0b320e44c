package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A timer that fires while an earlier call of watch absorbs the connection leaves it alone.
func TestWatchOnce(t *testing.T) {
	s := newBed(t, nil).Server
	c := newConn(s, &script{})
	c.writes.Store(1 | absorbing)
	c.seen.Store(1 | absorbing)
	c.watch()
	assert.Empty(t, c.absorbed)
	assert.Len(t, s.backlogs, maxBacklogs)
}
