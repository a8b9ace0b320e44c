package drive

import (
	"context"
	"sync"
)

// InARow bounds the writes of one run, and the tries of one change by the administration. After a
// conflict the next one follows at once.
const InARow = 8

// Machine is a machine of the protocol, such as grant.Machine: it is asked for the next operation, and
// told what became of it.
type Machine[Input, Op, Result, Event any] interface {
	Next(Input) Op
	Done(Input, Op, Result) []Event
}

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

// Driver is what a package gives to a run: the inputs of its machine, and the acts that follow from its
// results. Run holds the lock while it calls a machine, and all methods but Do.
type Driver[Input, Op, Result, Event any] interface {
	sync.Locker
	// Input returns what the machine is told before an operation. An error ends the run.
	Input() (Input, error)
	// After changes an input to what it is after the operation: calls of the store take time.
	After(*Input)
	// Kind returns what an operation is. With None it returns why there is nothing to do, or nil.
	Kind(Op) (Kind, error)
	// Do carries an operation out. An error of a Write or a Prepare says that its outcome is
	// unknown, and an error of an Ask that it failed. A conflict is a result and no error; so is
	// anything else that the machine decides by.
	Do(context.Context, Op) (Result, error)
	// Apply acts on an event. settled reports that what was written has landed, or never will. The
	// first error ends the run, once all events of the operation were applied.
	Apply(Event) (settled bool, err error)
	// Busy returns the error of InARow writes that all met those of other processes.
	Busy() error
}

// Run runs a machine until a write is acknowledged, or there is nothing to do now. The package doc
// says what it keeps to. It returns soon after ctx ends, as the calls of the store do.
func Run[Input, Op, Result, Event any](ctx context.Context, m Machine[Input, Op, Result, Event], d Driver[Input, Op, Result, Event]) error {
	var unknown error // of the last write, whose outcome is unknown
	var of Kind       // what that write was
	for writes := 0; writes < InARow; {
		in, op, kind, err := next(m, d)
		switch {
		case kind == None:
			return err
		case unknown != nil && (kind == Write || kind == of): // it has not landed so far
			return unknown
		}
		result, failed := d.Do(ctx, op)
		settled, err := done(m, d, in, op, result)
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

func next[Input, Op, Result, Event any](m Machine[Input, Op, Result, Event], d Driver[Input, Op, Result, Event]) (in Input, op Op, kind Kind, err error) {
	d.Lock()
	defer d.Unlock()
	if in, err = d.Input(); err != nil {
		return in, op, None, err
	}
	op = m.Next(in)
	kind, err = d.Kind(op)
	return in, op, kind, err
}

func done[Input, Op, Result, Event any](m Machine[Input, Op, Result, Event], d Driver[Input, Op, Result, Event], in Input, op Op, r Result) (settled bool, err error) {
	d.Lock()
	defer d.Unlock()
	d.After(&in)
	for _, e := range m.Done(in, op, r) {
		now, failed := d.Apply(e)
		settled = settled || now
		if err == nil {
			err = failed
		}
	}
	return settled, err
}
