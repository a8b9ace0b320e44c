package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What one protocol tells its client to repeat, all do, and nothing else. Conditions with one status of gRPC are all final or
// all not, so that a client that knows the status alone does what the others do.
func TestConditions(t *testing.T) {
	t.Parallel()
	for code, c := range conditions {
		again := Code(code) == Busy || Code(code) == Unavailable
		assert.Equal(t, again, c.RESP == "TRYAGAIN" || c.RESP == "LOADING", c.Name)
		assert.Equal(t, again || Code(code) == Internal, c.HTTP == 429 || c.HTTP >= 500, c.Name)
		assert.Equal(t, again, (c.GRPC == 8 || c.GRPC == 14) && c.HTTP > 0, c.Name)
		assert.Equal(t, c.Final, OfGRPC(c.GRPC).Words().Final, c.Name)
		assert.False(t, again && c.Final, c.Name)
	}
}
