// Package systemd takes the sockets that systemd passes to a server, and tells systemd when
// the server is ready and when it stops. Without systemd its functions do nothing.
//
// You need these names:
//
//   - [Listeners]: the sockets, by protocol.
//   - [Notify] with [Ready] and [Stopping].
package systemd

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// States for [Notify].
const (
	Ready    = daemon.SdNotifyReady
	Stopping = daemon.SdNotifyStopping
)

// Notify tells systemd the state of the process, if systemd has asked for it. The error says
// that systemd's socket cannot be written to.
func Notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("tell systemd %s: %w", state, err)
	}
	return nil
}

// Listeners returns the sockets that systemd has passed, by FileDescriptorName of the socket
// unit. Each must have one of the names, and no two the same. Call it once: it takes the
// sockets out of the environment.
//
// The error names the socket that has another name, or does not take connections. All
// sockets are then closed.
func Listeners(names ...string) (map[string]net.Listener, error) {
	return listeners(activation.Files(true), names)
}

func listeners(files []*os.File, names []string) (_ map[string]net.Listener, err error) {
	all := make(map[string]net.Listener)
	defer func() {
		for _, f := range files {
			f.Close() // the listener has a descriptor of its own
		}
		if err != nil {
			for _, l := range all {
				l.Close()
			}
		}
	}()
	for _, f := range files {
		name := f.Name()
		switch {
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("systemd passed a socket with the name %q: set FileDescriptorName of each socket unit to one of %s", name, strings.Join(names, ", "))
		case all[name] != nil:
			return nil, fmt.Errorf("systemd passed two sockets with the name %s, and there can be one: passed were %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("systemd passed the socket %s, which takes no connections: set ListenStream in its unit: %w", name, err)
		}
		all[name] = l
	}
	return all, nil
}
