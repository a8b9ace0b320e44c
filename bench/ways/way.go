package ways

import (
	"context"
	"errors"
	"slices"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
)

// way is one way to make IDs.
type way struct {
	name      string
	group     results.Group
	note      string // what it does for an ID
	published string // what others have measured
	needs     []place
	// setUp makes what the clients share, if it is not nil.
	setUp func(context.Context, running) error
	// open makes a client. Clients are as processes are to each other: they share the
	// servers and nothing else. ctx is that of the whole section.
	open func(ctx context.Context, r running, number int) (client, error)
}

// client makes IDs, as one process does.
type client struct {
	next  func(context.Context) (int64, error) // by any number of goroutines
	close func() error
}

// noIDs is what a floor returns for IDs.
const noIDs = -1

// place is a server's part in the section.
type place int

// The places.
const (
	postgres place = iota
	maria
	secondMaria // for the tickets, which come from two
	redisAsShipped
	redisSynced
	zooKeeper
)

var wanted = []servers.Wanted{
	postgres:       {Kind: servers.PostgreSQL},
	maria:          {Kind: servers.MariaDB},
	secondMaria:    {Kind: servers.MariaDB},
	redisAsShipped: {Kind: servers.Redis},
	redisSynced:    {Kind: servers.Redis, Settings: []string{"--appendonly", "yes", "--appendfsync", "always"}},
	zooKeeper:      {Kind: servers.ZooKeeper},
}

// running is the servers, by place.
type running []*servers.Server

// missing returns why a way cannot be measured, or nil.
func (r running) missing(w way) error {
	var errs []error
	for _, p := range w.needs {
		errs = append(errs, r[p].Err)
	}
	return errors.Join(errs...)
}

// any says whether at least one runs.
func (r running) any() bool {
	return slices.ContainsFunc(r, func(s *servers.Server) bool { return s.Err == nil })
}

// list is all ways, in the order in which they are shown.
func list() []way {
	var all []way
	all = append(all, alone(), syncFloor())
	all = append(all, postgresWays()...)
	all = append(all, mariaWays()...)
	all = append(all, redisWays()...)
	return append(all, zooKeeperWays()...)
}
