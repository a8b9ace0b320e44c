package guest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
)

// A program of a user that prints nothing has failed under a fault, and others can follow.
func TestMuteProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{begin: time.Now()}
		l := &record{stage: s, check: check.New(nil)}
		s.carrier = &carrier{stage: s, records: []*record{l}, program: []string{"mute"}}
		assert.False(t, s.ready())
		verdict := l.result().Verdict
		assert.Zero(t, verdict.IDs)
		assert.Contains(t, verdict.Error, "it printed nothing")
	})
}
