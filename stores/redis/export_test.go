package redis

import "context"

// Open is stores.Open without the questions to the server.
func Open(ctx context.Context, url string) (*Store, error) {
	s, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	return s.(*Store), nil
}
