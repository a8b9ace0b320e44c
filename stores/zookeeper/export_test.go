package zookeeper

import (
	"context"

	"github.com/tickflake/tickflake/stores"
)

// Open is stores.Open without the questions to the server.
func Open(ctx context.Context, url string) (*Store, error) {
	s, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	return s.(*Store), nil
}

// swapCell is Swap from a cell to the next.
func swapCell(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}
