//go:build !unix

package server

// Pause stops the process.
func (p *Process) Pause() error { return errNotUnix }

// Continue lets a process that Pause has stopped go on.
func (p *Process) Continue() error { return errNotUnix }
