//go:build !linux

package stores_test

import (
	"net"
	"testing"
)

func limited(*testing.T, net.Conn) {}
