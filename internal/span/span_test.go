package span_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/span"
)

func TestText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond:            "1.5s",
		-47 * time.Hour:                    "-47h0m0s",
		48 * time.Hour:                     "2.0 days",
		-198510*time.Hour - 24*time.Minute: "-22.65 years",
		1<<63 - 1:                          "292.27 years",
	} {
		assert.Equal(t, want, span.Text(d))
	}
}
