package snowflake_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/snowflake"
)

func TestRun(t *testing.T) {
	r := snowflake.Run{First: 1000, Count: 3, Stride: 16}
	assert.Equal(t, snowflake.ID(1000), r.At(0))
	assert.Equal(t, snowflake.ID(1016), r.At(1))
	assert.Equal(t, snowflake.ID(1032), r.Last())
	assert.Equal(t, snowflake.ID(7), snowflake.Run{First: 7, Count: 1, Stride: 1}.Last())
}

func ExampleRun() {
	r := snowflake.Run{First: 7000, Count: 3, Stride: 1}
	for i := range r.Count {
		fmt.Println(r.At(i))
	}
	// Output:
	// 7000
	// 7001
	// 7002
}
