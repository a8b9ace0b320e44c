package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/tickflake/tickflake/snowflake"
)

// fleet holds the workers and the IDs that they issued. It is for one goroutine.
type fleet struct {
	path, storeURL string
	workers        []*worker
	lines          chan line                // of all workers
	issued         map[snowflake.ID]*worker // who issued an ID
}

// worker is a process of the fleet.
type worker struct {
	number int // from 1
	cmd    *exec.Cmd
	ids    int   // number of IDs
	node   int64 // of the last ID, or -1
	ended  bool
}

// line is a line that a worker printed, or its end.
type line struct {
	from  *worker
	text  string
	ended bool
	err   error // of its end
}

var errEnded = errors.New("without an error")

func newFleet(path, storeURL string) *fleet {
	return &fleet{path: path, storeURL: storeURL, lines: make(chan line), issued: make(map[snowflake.ID]*worker)}
}

// start starts one more worker.
func (f *fleet) start() error {
	w := &worker{number: len(f.workers) + 1, node: -1}
	w.cmd = exec.Command(f.path, "--store", f.storeURL)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("start worker %d: %w", w.number, err)
	}
	fmt.Printf("worker %d is process %d\n", w.number, w.cmd.Process.Pid)
	f.workers = append(f.workers, w)
	go f.read(w, out)
	return nil
}

// read sends the lines of a worker to f.lines. It ends with the worker; killAll receives the
// last line, if no other method did.
func (f *fleet) read(w *worker, out io.Reader) {
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		f.lines <- line{from: w, text: scanner.Text()}
	}
	err := errors.Join(scanner.Err(), w.cmd.Wait())
	f.lines <- line{from: w, ended: true, err: err}
}

// work waits until each living worker has issued ids more IDs.
func (f *fleet) work(ctx context.Context, ids int) error {
	goal := make(map[*worker]int)
	for _, w := range f.workers {
		if !w.ended {
			goal[w] = w.ids + ids
		}
	}
	for len(goal) > 0 {
		l, err := f.take(ctx)
		if err != nil {
			return err
		}
		if l.ended {
			return fmt.Errorf("worker %d has ended by itself: %w", l.from.number, cmp.Or(l.err, errEnded))
		}
		if l.from.ids == goal[l.from] {
			delete(goal, l.from)
			fmt.Printf("worker %d has issued %d IDs, on node %d\n", l.from.number, l.from.ids, l.from.node)
		}
	}
	return nil
}

// take receives the next line of any worker, and checks the ID in it.
func (f *fleet) take(ctx context.Context) (line, error) {
	var l line
	select {
	case l = <-f.lines:
	case <-ctx.Done():
		return l, fmt.Errorf("waiting for the workers: %w", ctx.Err())
	}
	if l.ended {
		l.from.ended = true
		return l, nil
	}
	id, err := snowflake.Parse(l.text)
	if err != nil {
		return l, fmt.Errorf("worker %d: %w", l.from.number, err)
	}
	return l, f.check(l.from, id)
}

// check records an ID. It returns an error if the ID came before, or if another living worker
// has the same node number.
func (f *fleet) check(w *worker, id snowflake.ID) error {
	if first, ok := f.issued[id]; ok {
		return fmt.Errorf("ID %d came twice: from worker %d and worker %d", id, first.number, w.number)
	}
	f.issued[id] = w
	w.ids++
	parts, err := snowflake.Default().Decode(id)
	if err != nil {
		return err
	}
	w.node = parts.Node
	for _, other := range f.workers {
		if other != w && !other.ended && other.node == w.node {
			return fmt.Errorf("workers %d and %d share node number %d", other.number, w.number, w.node)
		}
	}
	return nil
}

// kill kills a worker, as kill -9 does.
func (f *fleet) kill(ctx context.Context, w *worker) error {
	if err := w.cmd.Process.Kill(); err != nil {
		return err
	}
	for !w.ended {
		if _, err := f.take(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("worker %d was killed, and had node %d\n", w.number, w.node)
	return nil
}

// endAll sends SIGTERM to all workers, and waits until they have ended.
func (f *fleet) endAll(ctx context.Context) error {
	for _, w := range f.workers {
		if w.ended {
			continue
		}
		if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	for f.living() > 0 {
		l, err := f.take(ctx)
		if err != nil {
			return err
		}
		if l.ended && l.err != nil {
			return fmt.Errorf("worker %d: %w", l.from.number, l.err)
		}
	}
	return nil
}

// killAll kills the workers that still run.
func (f *fleet) killAll() {
	for _, w := range f.workers {
		if !w.ended {
			_ = w.cmd.Process.Kill() // it may have ended by itself
		}
	}
	for f.living() > 0 {
		if l := <-f.lines; l.ended {
			l.from.ended = true
		}
	}
}

func (f *fleet) living() int {
	n := 0
	for _, w := range f.workers {
		if !w.ended {
			n++
		}
	}
	return n
}
