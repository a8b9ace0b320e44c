package stores

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// ErrOverloaded is wrapped by the error of an operation whose deadline has passed while each
// goroutine of this process that was ready to run waited for about half a second or longer:
// the store may have answered in time. A [github.com/tickflake/tickflake/lease.Keeper] that was
// woken late says so with it, too.
var ErrOverloaded = Passing.New("this process gets too little processor time")

// overload is the number of goroutines that wait for a processor. It is [ErrOverloaded], which is Passing.
type overload string

func (o overload) Error() string { return string(o) }

func (overload) Is(target error) bool { return target == ErrOverloaded || target == Passing }

// overloaded returns whether so many goroutines wait for a processor that this explains a
// deadline that has passed, or an empty text. It looks twice, since goroutines that all woke at
// the same moment are soon gone.
func overloaded() overload {
	const slice, long = 10 * time.Millisecond, 500 * time.Millisecond // slice: Go lets a goroutine compute for so long
	most := uint64(runtime.GOMAXPROCS(0)) * uint64(long/slice)
	waiting := waitingForProcessor()
	if waiting < most {
		return ""
	}
	time.Sleep(2 * slice)
	if waiting = waitingForProcessor(); waiting < most {
		return ""
	}
	return overload(fmt.Sprintf("%d goroutines wait for GOMAXPROCS=%d: let fewer compute at once", waiting, runtime.GOMAXPROCS(0)))
}

func waitingForProcessor() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(sample)
	if v := sample[0].Value; v.Kind() == metrics.KindUint64 {
		return v.Uint64()
	}
	return 0 // a Go without this metric
}
