package generator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestIssuingDoesNotAllocate(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := newGenerator(t, generator.WithLayout(wide()))
	atCeiling := newGenerator(t, generator.WithLayout(narrow()))
	s, ids := g.Stream(), make([]snowflake.ID, 100)
	for name, call := range map[string]func() error{
		"Next":        func() error { _, err := g.Next(); return err },
		"NextContext": func() error { _, err := g.NextContext(ctx); return err },
		"NextAfter":   func() error { _, err := g.NextAfter(ctx, 1<<40); return err },
		"NextN":       func() error { _, err := g.NextN(ids); return err },
		"Stream":      func() error { _, err := s.Next(); return err },
		"waiting":     func() error { _, err := atCeiling.NextContext(ctx); return err },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() { require.NoError(t, call()) }), name)
	}
}
