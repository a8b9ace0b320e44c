// Command newcomer prints IDs as many programs make them: milliseconds and a counter. It is
// an example for 'tickflake-chaos kernel --program', which finds its bugs.
package main

import (
	"fmt"
	"time"
)

func main() {
	var last, count int64
	for {
		now := time.Now().UnixMilli()
		if now != last {
			last, count = now, 0
		}
		fmt.Println(now<<12 | count)
		count++
		time.Sleep(100 * time.Microsecond) // the work between two IDs
	}
}
