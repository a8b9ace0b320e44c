package mysql

import (
	"context"

	"github.com/tickflake/tickflake/stores/sqlstore"
)

// Open is stores.Open without the questions to the server.
func Open(ctx context.Context, url string) (*sqlstore.Store, error) {
	s, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	return s.(*sqlstore.Store), nil
}
