package indexes

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/generator"
)

// key is a kind of primary key.
type key struct {
	name  string
	table string
	group results.Group
	// column is how it is declared, in PostgreSQL and in MariaDB.
	postgres, maria string
	// next makes a key. If it is nil, the server does.
	next func() (any, error)
}

const (
	oursName   = "tickflake"
	autoName   = "auto-increment"
	randomName = "UUIDv4"
	sortedName = "UUIDv7"
)

// keys returns all kinds, with a generator of their own each.
func keys() ([]key, error) {
	g, err := generator.New(generator.WithNode(1))
	if err != nil {
		return nil, err
	}
	all := []key{
		{oursName, "by_tickflake", results.Ours, "bigint", "bigint", func() (any, error) {
			id, err := g.Next()
			return int64(id), err
		}},
		{autoName, "by_auto", results.Peers, "bigint GENERATED ALWAYS AS IDENTITY", "bigint AUTO_INCREMENT", nil},
		{sortedName, "by_uuid7", results.Peers, "uuid", "binary(16)", bytesOf(uuid.NewV7)},
		{randomName, "by_uuid4", results.Peers, "uuid", "binary(16)", bytesOf(uuid.NewRandom)},
	}
	for i, added := range yours.List() {
		next, err := added.New(yours.System{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", added.Name, err)
		}
		all = append(all, key{added.Name, fmt.Sprint("by_yours_", i), results.Peers, "bigint", "bigint", func() (any, error) { return next() }})
	}
	return all, nil
}

// bytesOf makes UUIDs that the drivers send as 16 bytes, and not as text.
func bytesOf(next func() (uuid.UUID, error)) func() (any, error) {
	return func() (any, error) {
		u, err := next()
		return u[:], err
	}
}
