package ways

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
)

// syncFloor is the least that it takes to make a number durable.
func syncFloor() way {
	return way{
		name: floorName, group: results.Floor,
		note: "no ID: what every server that keeps its word does before it answers",
		open: func(context.Context, running, int) (client, error) {
			dir, err := servers.Dir()
			if err != nil {
				return client{}, err
			}
			file, err := os.Create(filepath.Join(dir, "block"))
			if err != nil {
				return client{}, errors.Join(err, os.RemoveAll(dir))
			}
			block := make([]byte, 4096)
			return client{
				next: func(context.Context) (int64, error) {
					if _, err := file.WriteAt(block, 0); err != nil {
						return 0, err
					}
					return noIDs, file.Sync()
				},
				close: func() error { return errors.Join(file.Close(), os.RemoveAll(dir)) },
			}, nil
		},
	}
}

const floorName = "write 4 kB to the disk and sync it"
