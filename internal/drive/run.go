package drive

import (
	"context"
	"sync"
)

// InARow bounds the writes of one run, and the tries of one change by the administration. After a
// conflict the next one follows at once.
const InARow = 8

// Kind says what an operation is for a run.
type Kind uint8

const (
	// None: there is nothing to do, and the run ends.
	None Kind = iota
	// Ask writes no cell: it reads, lists, locks or seals. If it fails, the run ends.
	Ask
	// Write is a swap. Once it is acknowledged, the run ends.
	Write
	// Prepare is a swap that has to come before any Write: it makes the fleet's cell, or raises or
	// marks a cell of a store that went back. It need not wait for the outcome of a Write.
	Prepare
)

// Driver is a machine of the protocol, such as grant.Machine, with its inputs, its present operation, and the acts that
// follow from its results. Run holds the lock while it calls a method, but for Do.
type Driver interface {
	sync.Locker
	// Next asks the machine for the next operation, and returns what that is. With None it returns why there is
	// nothing to do, or nil.
	Next() (Kind, error)
	// Do carries the operation out. An error of a Write or a Prepare says that its outcome is
	// unknown, and an error of an Ask that it failed. A conflict is a result and no error; so is
	// anything else that the machine decides by.
	Do(context.Context) error
	// Done tells the machine what became of the operation, with the input as it is then: calls of the store take time.
	// It acts on all that has happened. settled reports that what was written has landed, or never will. An error
	// ends the run.
	Done() (settled bool, err error)
	// Busy returns the error of InARow writes that all met those of other processes.
	Busy() error
}

// Act acts on each event. settled reports that it was so for one of them, and the error is the first.
func Act[Event any](events []Event, act func(Event) (settled bool, err error)) (settled bool, err error) {
	for _, e := range events {
		now, failed := act(e)
		settled = settled || now
		if err == nil {
			err = failed
		}
	}
	return settled, err
}

// Run runs a machine until a write is acknowledged, or there is nothing to do now. The package doc
// says what it keeps to. It returns soon after ctx ends, as the calls of the store do.
func Run(ctx context.Context, d Driver) error {
	var unknown error // of the last write, whose outcome is unknown
	var of Kind       // what that write was
	for writes := 0; writes < InARow; {
		kind, err := locked(d, d.Next)
		switch {
		case kind == None:
			return err
		case unknown != nil && (kind == Write || kind == of): // it has not landed so far
			return unknown
		}
		failed := d.Do(ctx)
		settled, err := locked(d, d.Done)
		if settled {
			unknown, of = nil, None
		}
		if kind != Ask {
			writes++
		}
		switch {
		case err != nil:
			return err
		case failed != nil && kind != Ask:
			unknown, of = failed, kind
		case failed != nil && unknown != nil:
			return unknown
		case failed != nil:
			return failed
		case kind == Write && settled:
			return nil
		}
	}
	if unknown != nil {
		return unknown
	}
	d.Lock()
	defer d.Unlock()
	return d.Busy()
}

func locked[T any](d Driver, do func() (T, error)) (T, error) {
	d.Lock()
	defer d.Unlock()
	return do()
}
