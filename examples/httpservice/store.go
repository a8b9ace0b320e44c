package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/etcd"
)

// openStore opens the store at a URL. Another kind of store is another case, and
// another module to require.
func openStore(ctx context.Context, rawURL string) (store lease.Store, closeStore func() error, err error) {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	switch scheme {
	case "file":
		store, err = directory.Open(rest)
		return store, func() error { return nil }, err
	case "etcd", "etcds":
		s, err := etcd.Open(ctx, rawURL)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	// It does not show the URL, because a mistyped one may hold a password anywhere.
	return nil, nil, errors.New("--store or $TICKFLAKE_STORE must begin with file:, etcd:// or etcds://")
}

// leaseOptions says what to claim.
func leaseOptions(s settings) ([]lease.Option, error) {
	var options []lease.Option
	if !strings.HasPrefix(s.store, "file:") {
		// Beside others on other hosts, a clock that is far from theirs is to be set right
		// before it makes IDs: it would move its node number's time ahead, or sort before.
		options = append(options, lease.WithFleetCheck(time.Minute, true))
	}
	if s.window != 0 {
		options = append(options, lease.WithWindow(s.window))
	}
	if s.owner != "" {
		options = append(options, lease.WithOwner(s.owner))
	}
	switch s.node {
	case "any":
	case "statefulset":
		options = append(options, lease.WithNode(lease.NodeFromStatefulSet()))
	default:
		n, err := strconv.ParseInt(s.node, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--node %.40q: want a number, any or statefulset", s.node)
		}
		options = append(options, lease.WithNode(lease.NodeNumber(n)))
	}
	return options, nil
}
