package snowflake_test

import (
	"fmt"

	"github.com/tickflake/tickflake/snowflake"
)

func ExampleRun() {
	r := snowflake.Run{First: 7000, Count: 3, Stride: 16}
	for i := range r.Count {
		fmt.Println(r.At(i))
	}
	fmt.Println("the last is", r.Last())
	// Output:
	// 7000
	// 7016
	// 7032
	// the last is 7032
}
