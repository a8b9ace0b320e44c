//go:build linux

package guest

import "time"

// ExecWindow is the grant of lease exec in its fault, and execStep goes past its end.
const (
	ExecWindow = 2 * time.Second
	execStep   = 4 * time.Second
)

// execFaults are for a program that lease exec runs: the steps end it, and the next one begins above the times to which the
// clock comes back.
func execFaults() []Fault {
	return []Fault{{
		Name: "step-ahead-back-4s", About: "CLOCK_REALTIME steps ahead 4 s, past the end of a grant of 2 s, and back half a second later, three times",
		Kind: Clocks, Window: ExecWindow, Run: func(s *Stage) {
			s.Issue(before)
			s.Mark()
			for range 3 {
				s.Step(execStep)
				s.Issue(500 * time.Millisecond)
				s.Step(-execStep)
				s.Issue(execStep + 2*ExecWindow) // until the next one has begun
			}
			s.goOn(after)
		},
	}}
}
