package lease_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestNilStore(t *testing.T) {
	var none *storetest.Memory
	for name, call := range map[string]func(context.Context, stores.Store) error{
		"Claim":        func(ctx context.Context, s stores.Store) error { _, err := lease.Claim(ctx, s); return err },
		"List":         func(ctx context.Context, s stores.Store) error { _, err := lease.List(ctx, s); return err },
		"Inspect":      func(ctx context.Context, s stores.Store) error { _, err := lease.Inspect(ctx, s, 1); return err },
		"ForceRelease": func(ctx context.Context, s stores.Store) error { return lease.ForceRelease(ctx, s, 1) },
	} {
		for _, err := range []error{call(t.Context(), nil), call(t.Context(), none)} {
			var option *stores.OptionError
			require.ErrorAs(t, err, &option, name)
			require.Equal(t, name, option.Option)
			require.ErrorContains(t, err, "is nil")
		}
	}
}
