package generatortest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// One that refuses to start has done nothing, which the report says.
func TestRefusalIsNoted(t *testing.T) {
	l := &life{starting: func() error { return errNo }}
	s := l.subject()
	s.Name, s.Epoch = "late", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	report := gt.Run(s, gt.Scenario{Fault: "F18", Name: "early", Script: parse("begin 1970-06-15T12:00:00Z; ids 50")})
	assert.Equal(t, "it refused to start, as it may: no", report.Results[0].Note)
	assert.Equal(t, `   fault      IDs  errors  duplicates  disorder  stall  lead
✓  F18 early  0    0       0           0         0s     0s  it refused to start, as it may: no
`, report.String())

	other := gt.Run(s, gt.Scenario{Name: "early", Script: parse("begin 1970-06-15T12:00:00Z; ids 50")}, gt.Scenario{Name: "on-time", Script: parse("ids 1")})
	for _, line := range strings.Split(other.String(), "\n") {
		assert.Equal(t, strings.TrimRight(line, " "), line)
	}
	assert.Empty(t, other.Results[1].Note)
}

// A script that says nothing of its begin begins as all do, and a generator that
// refuses that, since its epoch is yet to come, cannot be looked at.
func TestNoExcuseForAllScripts(t *testing.T) {
	l := &life{starting: func() error { return errNo }}
	s := l.subject()
	s.Epoch = noon.Add(time.Hour)
	assert.Equal(t, map[gt.Kind]int{gt.NoStart: 1}, gt.RunScript(s, parse("ids 1")).Violated)
	assert.Empty(t, gt.RunScript(s, parse("begin 2026-06-01T12:00:00Z; ids 1")).Violated)
}

// Among several callers, an ID may be as far ahead as is claimed for any cause: that
// of its call cannot be known.
func TestCallersAheadForEitherCause(t *testing.T) {
	for _, c := range []gt.Claim{claim(borrow(3*ms), wait(0)), claim(wait(0), borrow(3*ms))} {
		s := taped(c)
		many := (&counter{last: int64(at(3, 0))}).subject() // up to 3.15
		r := gt.RunScript(gt.Subject[int64]{
			Name: s.Name, New: many.New, Claim: c, Tick: ms,
			Time: func(id int64) time.Time { return tid(id).time() },
		}, parse("callers 3; ids 12"))
		assert.Zero(t, r.Violated[gt.Lead], lines(r))
		assert.Equal(t, 3*ms, r.LargestLead)
	}
}

// A process that starts on another's state may leave out what that had reserved, as
// long as it says how much.
func TestReserve(t *testing.T) {
	for reserve, want := range map[time.Duration]int{0: 3, 5 * time.Minute: 3, 10 * time.Minute: 0, gt.Forever: 0} {
		var start func(clock *clocktest.Virtual, floor time.Time) gt.Process[int64]
		start = func(clock *clocktest.Virtual, floor time.Time) gt.Process[int64] {
			last := floor.UnixMicro()
			return gt.Process[int64]{
				Next: func() (int64, error) {
					now := clock.Now().UnixMicro()
					if now <= last {
						return 0, errNo
					}
					last = now
					return now, nil
				},
				Restart: func() (gt.Process[int64], error) { return start(clock, floor.Add(10*time.Minute)), nil },
			}
		}
		s := gt.Subject[int64]{
			Name: "reserves",
			New: func(clock *clocktest.Virtual) (gt.Process[int64], error) {
				return start(clock, clock.Now().Add(-1)), nil
			},
			Time:    func(id int64) time.Time { return time.UnixMicro(id) },
			Tick:    time.Microsecond,
			Reserve: reserve,
		}
		r := gt.RunScript(s, parse("ids 10 over 10s; crash; ids 1; crash; ids 1; crash; ids 1"))
		assert.Equal(t, want, r.Violated[gt.NoRecovery], reserve)
		assert.Zero(t, r.Duplicates)
	}
}
