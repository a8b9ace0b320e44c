package generator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/strategies"
)

// TestFarLead: a lead that only a wrong clock brings is no matter of the strategy.
func TestFarLead(t *testing.T) {
	for lead, advised := range map[time.Duration]bool{time.Hour: true, time.Hour + 1: false} {
		err := &generator.LeadError{Cause: strategies.Behind, Lead: lead, Limit: time.Second}
		assert.Equal(t, advised, strings.Contains(err.Error(), "strategy"), err)
	}
}
