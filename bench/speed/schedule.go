package speed

import "time"

// schedule is when calls are due: so many, one after each gap.
type schedule struct {
	gap   time.Duration
	calls int
}

// length is how long the schedule is.
func (s schedule) length() time.Duration { return time.Duration(s.calls) * s.gap }

// outcome is how a schedule went.
type outcome struct {
	done int           // calls
	took time.Duration // from the first call's time to the end, of the schedule or of the last call
	err  error
}

// run makes the calls when they are due, and records by how much each is over later
// than it was due. A call that is due while another is under way is made as soon as
// that is over, and counts from when it was due: so whatever holds one up is seen in
// all that queue behind it. Waiting is reading the clock.
//
// At twice the schedule's length it gives up: the calls that are left are recorded as
// late as they are by then, which is less than they would have been.
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
