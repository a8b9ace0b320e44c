package engine

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// overload is the number of goroutines that wait for a processor. It is [stores.ErrOverloaded], which is Transient.
type overload string

func (o overload) Error() string { return string(o) }

func (overload) Is(target error) bool {
	return target == stores.ErrOverloaded || target == stores.Transient
}

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
