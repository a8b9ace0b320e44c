package generator

import (
	"syscall"
	"time"
)

// nap sleeps for d on the calling thread, which wakes within about 0.1 ms of the
// time asked for where a runtime timer takes up to 1 ms more. Meanwhile the
// runtime moves the goroutines that the thread's processor would run to others.
//
// Where the thread cannot sleep (a seccomp filter forbids it) or Go's time is
// not the machine's (in a bubble of testing/synctest, where no time passes for a
// sleeping thread), nap falls back on the runtime.
func nap(d time.Duration) {
	before := time.Now()
	t := syscall.NsecToTimespec(int64(d))
	err := syscall.Nanosleep(&t, nil)
	if err != nil && err != syscall.EINTR || time.Since(before) == 0 {
		time.Sleep(d)
	}
}
