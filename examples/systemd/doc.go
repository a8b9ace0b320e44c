// Package systemd tests the units in this directory.
package systemd
