package resp

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestDecimals compares runs of numbers with the same numbers written one by one, around all
// changes of their length.
func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, stride := range []int64{1, 2, 7, 64, 1024, 1 << 22} {
		check := func(first int64) {
			var together, each reply
			together.decimals(first, 30, stride)
			for n := range int64(30) {
				text := strconv.FormatInt(first+n*stride, 10)
				each.bulk(text)
			}
			assert.Equal(t, string(each.b), string(together.b), "%d, %d", first, stride)
		}
		check(0)
		for power := int64(10); power <= 1e18; power *= 10 {
			check(max(0, power-10*stride))
			check(power - 1)
			check(power)
			if power == 1e18 {
				break
			}
		}
		check(math.MaxInt64 - 29*stride)
	}
	var none reply
	none.decimals(5, 0, 1)
	assert.Empty(t, none.b)
}

// TestErrorsAreLines: no text makes two lines of an error, or a long one.
func TestErrorsAreLines(t *testing.T) {
	t.Parallel()
	var r reply
	r.fail("ERR", "a\r\n+OK\x00\x1b"+strings.Repeat("x", 5000))
	assert.Equal(t, "-ERR a  +OK  "+strings.Repeat("x", 992)+"\r\n", string(r.b))
}
