package nats

import (
	"context"

	"github.com/tickflake/tickflake/stores"
)

func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	return stores.Failed(ctx, "nats", op, key, s.namespace, err)
}
