package chaos_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// twice reads the clock to see whether it is behind, and again for the ID. It is wrong
// only if the wall steps back between the two readings.
type twice struct{ control }

func newTwice(clock *clocktest.Virtual, kept *state) issuer {
	return &twice{control{clock: clock, kept: kept}}
}

func (m *twice) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.ms(); now < m.last {
		return 0, behind(m.last - now)
	}
	now, seq := m.ms(), int64(0)
	if now == m.last {
		if seq = (m.seq + 1) & mutantMask; seq == 0 {
			now = m.after(m.last)
		}
	}
	m.last, m.seq = now, seq
	return now<<mutantBits | seq, nil
}

// TestStepsInTheMiddleOfCalls shows the use of such steps: this generator is right as
// long as the wall steps between its calls only.
func TestStepsInTheMiddleOfCalls(t *testing.T) {
	subject := mutantSubject("reads twice", waits, newTwice)
	for _, fault := range []string{"F4", "F5"} {
		script := scenarioOf(t, fault).Script
		r := generatortest.RunScript(subject, script)
		assert.Positive(t, r.Disorder, fault)
		if fault == "F5" { // F4 does not go back into what has been used
			assert.Positive(t, r.Duplicates)
		}
		for i := range script.Steps {
			if script.Steps[i].Do == generatortest.StepWall {
				script.Steps[i].Count = 0
			}
		}
		assert.Empty(t, generatortest.RunScript(subject, script).Violations, "%s with its steps between calls", fault)
	}
	script := amongCallers(t)
	assert.Positive(t, generatortest.RunScript(subject, script).Duplicates, "among callers")
}
