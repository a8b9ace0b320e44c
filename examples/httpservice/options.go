package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/lease"
)

// leaseOptions returns the options of the claim.
func leaseOptions(s settings) ([]lease.Option, error) {
	var options []lease.Option
	if strings.Contains(s.store, "://") {
		// The fleet runs on several hosts. If the clock of this one is wrong by a minute, the
		// service does not start: its IDs would not sort with those of the others.
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
