package generator

import (
	"syscall"
	"time"
)

// nap sleeps for d on the calling thread. The thread wakes at most about 0.1 ms late,
// where a runtime timer wakes up to 1 ms late. Meanwhile the runtime moves the
// goroutines of the thread's processor to other threads.
//
// nap falls back on the runtime's timers where the thread cannot sleep (a seccomp filter
// forbids it) and where Go's time is not the machine's (in a bubble of
// testing/synctest, no time passes for a sleeping thread).
func nap(d time.Duration) {
	before := time.Now()
	t := syscall.NsecToTimespec(int64(d))
	err := syscall.Nanosleep(&t, nil)
	if err != nil && err != syscall.EINTR || time.Since(before) == 0 {
		time.Sleep(d)
	}
}
