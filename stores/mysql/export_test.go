package mysql

import (
	"context"

	"github.com/tickflake/tickflake/stores/engine"
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

// Params returns the system variables that a URL sets.
func Params(rawURL string) (map[string]string, error) {
	u, err := engine.ParseDriverURL(rawURL, []string{"mysql"}, "table")
	if err != nil {
		return nil, err
	}
	config, err := configOf(u)
	if err != nil {
		return nil, err
	}
	return config.Params, nil
}
