package speed

import "time"

// schedule is when calls are due: so many, one after each gap.
type schedule struct {
	gap   time.Duration
	calls int
}

func (s schedule) length() time.Duration { return time.Duration(s.calls) * s.gap }

// outcome is how a schedule went.
type outcome struct {
	done int           // calls
	took time.Duration // to the end of the schedule or of the last call, whichever is later
	err  error
}

// run makes the calls when they are due, and records how long after that each ended. A
// call that is due during another one is made at the end of that one, and counts from the
// moment when it was due: a stall shows in all calls that queue behind it. Waiting is
// reading the clock.
//
// At twice the schedule's length run gives up. It records the calls that are left as late
// as they are by then, which is less than they would have been.
func (s schedule) run(now func() time.Duration, call func() error, record func(late time.Duration)) outcome {
	begin := now()
	t := begin
	for i := range s.calls {
		due := begin + time.Duration(i)*s.gap
		if t-begin > 2*s.length() {
			for left := i; left < s.calls; left++ {
				record(t - (begin + time.Duration(left)*s.gap))
			}
			return outcome{done: i, took: t - begin}
		}
		for t < due {
			t = now()
		}
		if err := call(); err != nil {
			return outcome{done: i, took: t - begin, err: err}
		}
		t = now()
		record(t - due)
	}
	return outcome{done: s.calls, took: max(t-begin, s.length())}
}
