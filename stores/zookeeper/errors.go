package zookeeper

import (
	"context"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	return remote.Failed("zookeeper", op, s.namespace, node, remote.Because(ctx.Err(), err))
}
