package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// qmp speaks QEMU's control protocol: JSON answers in the order of the commands, and
// events between them.
type qmp struct {
	conn io.ReadWriteCloser

	calls   sync.Mutex // one command at a time
	answers chan answer
	gone    chan struct{} // closed when QEMU has ended

	mu     sync.Mutex
	events []event
	more   chan struct{} // closed and replaced when an event comes
}

type event struct {
	Event string `json:"event"`
	Data  struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"data"`
}

type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
}

func newQMP(conn io.ReadWriteCloser) *qmp {
	return &qmp{conn: conn, answers: make(chan answer, 1), gone: make(chan struct{}), more: make(chan struct{})}
}

var errGone = errors.New("QEMU has ended")

// read reads until QEMU has ended.
func (q *qmp) read() {
	defer close(q.gone)
	in := json.NewDecoder(q.conn)
	for {
		var l struct {
			event
			answer
		}
		if in.Decode(&l) != nil {
			return
		}
		switch {
		case l.Event != "":
			q.mu.Lock()
			q.events = append(q.events, l.event)
			close(q.more)
			q.more = make(chan struct{})
			q.mu.Unlock()
		case l.Return != nil || l.Error != nil:
			select {
			case q.answers <- l.answer:
			default: // to a command that has timed out
			}
		}
	}
}

// execute runs a command.
func (q *qmp) execute(command string, arguments any) (json.RawMessage, error) {
	q.calls.Lock()
	defer q.calls.Unlock()
	err := json.NewEncoder(q.conn).Encode(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return nil, fmt.Errorf("QEMU: %s: %w (%w)", command, errGone, err)
	}
	limit := time.NewTimer(qmpLimit)
	defer limit.Stop()
	select {
	case a := <-q.answers:
		if a.Error != nil {
			return nil, fmt.Errorf("QEMU: %s: %s", command, a.Error.Desc)
		}
		return a.Return, nil
	case <-q.gone:
		return nil, fmt.Errorf("QEMU: %s: %w", command, errGone)
	case <-limit.C:
		q.conn.Close() // A late answer would be taken for that of the next command.
		return nil, fmt.Errorf("QEMU: %s: no answer in %v", command, qmpLimit)
	}
}

// seen returns how many events have come.
func (q *qmp) seen() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// await returns when the events so far are as wanted.
func (q *qmp) await(d time.Duration, wanted func([]event) bool) error {
	limit := time.NewTimer(d)
	defer limit.Stop()
	for {
		q.mu.Lock()
		events, more := q.events, q.more
		q.mu.Unlock()
		if wanted(events) {
			return nil
		}
		select {
		case <-more:
		case <-q.gone:
			return errGone
		case <-limit.C:
			return fmt.Errorf("no such event of QEMU in %v", d)
		}
	}
}

// last returns the last event with one of the names.
func last(events []event, names ...string) event {
	for _, e := range slices.Backward(events) {
		if slices.Contains(names, e.Event) {
			return e
		}
	}
	return event{}
}

// shutdown returns why the machine was turned off; "" if it was not.
func (q *qmp) shutdown() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return last(q.events, "SHUTDOWN").Data.Reason
}
