// Package window is a stand-in.
package window

import "sync"

type Range struct {
	Node     int64
	From, To uint64
}

type Window struct {
	mu      sync.Mutex
	bits    uint8
	end     uint64
	r       Range
	granted bool
	free    uint64 // slot
	sealed  bool
	err     error
	more    chan struct{}
	changed chan struct{}
	moreAt  uint64
}

func New(bits uint8, end uint64) *Window {
	return &Window{bits: bits, end: end, more: make(chan struct{}, 1), changed: make(chan struct{})}
}

func (w *Window) tell() { close(w.changed); w.changed = make(chan struct{}) }

func (w *Window) Grant(r Range, more uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return
	}
	if w.granted && r.Node == w.r.Node && r.From <= w.r.To {
		w.r.To = max(w.r.To, r.To)
	} else {
		w.free = max((w.free+1<<w.bits-1)>>w.bits<<w.bits, r.From<<w.bits)
		w.r = r
	}
	w.granted, w.moreAt = true, more
	w.tell()
}

func (w *Window) Revoke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = false
	w.tell()
}

func (w *Window) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.tell()
}

func (w *Window) Err() error { w.mu.Lock(); defer w.mu.Unlock(); return w.err }

func (w *Window) Used() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return (w.free + 1<<w.bits - 1) >> w.bits
}

func (w *Window) More() <-chan struct{} { return w.more }

func (w *Window) Changed() <-chan struct{} { w.mu.Lock(); defer w.mu.Unlock(); return w.changed }

func (w *Window) Seal() (end uint64, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = !w.sealed
	w.sealed = true
	w.tell()
	return (w.free + 1<<w.bits - 1) >> w.bits, first
}
