package seam

// Pointer is a pointer with the methods of atomic.Pointer. What it points to is
// observed along with it, if it has words of its own.
type Pointer[T any] struct {
	word  Uint64 // how often it was set, for others to see
	value *T
}

// Observe has o see every access from now on, under the word's name.
func (p *Pointer[T]) Observe(name string, o Observer) {
	p.word.Observe(name, o)
	p.share()
}

// share gives what p points to the observer of p.
func (p *Pointer[T]) share() {
	if words, ok := any(p.value).(interface{ Observe(Observer) }); ok && p.value != nil && p.word.observer != nil {
		words.Observe(p.word.observer)
	}
}

// Load is as that of atomic.Pointer.
func (p *Pointer[T]) Load() (value *T) {
	p.word.access(Load, func(old uint64) (uint64, bool) { value = p.value; return old, true })
	return value
}

// Store is as that of atomic.Pointer.
func (p *Pointer[T]) Store(value *T) {
	p.word.access(Store, func(old uint64) (uint64, bool) { p.value = value; return old + 1, true })
	p.share()
}

// CompareAndSwap is as that of atomic.Pointer.
func (p *Pointer[T]) CompareAndSwap(from, to *T) bool {
	_, _, done := p.word.access(CompareAndSwap, func(old uint64) (uint64, bool) {
		if p.value != from {
			return old, false
		}
		p.value = to
		return old + 1, true
	})
	if done {
		p.share()
	}
	return done
}

// Mutex is a lock with the methods of sync.Mutex. A caller who finds it taken lets
// others run until it is free. The zero Mutex is ready.
type Mutex struct {
	word   Uint64 // how often it was taken, for others to see
	locked bool
}

// Observe has o see every Lock from now on, under the lock's name.
func (m *Mutex) Observe(name string, o Observer) { m.word.Observe(name, o) }

// Lock is as that of sync.Mutex.
func (m *Mutex) Lock() {
	o := m.word.observer
	if o != nil {
		o.Before()
		for m.locked {
			o.Await(func() bool { return !m.locked })
		}
	}
	if m.locked {
		panic("seam: a lock is taken twice before anybody else could free it")
	}
	m.locked = true
	old := m.word.value
	m.word.value++
	if o != nil {
		o.After(Access{Word: m.word.name, Number: m.word.number, Op: Lock, Old: old, New: m.word.value})
	}
}

// Unlock is as that of sync.Mutex. Others notice it at their next step.
func (m *Mutex) Unlock() {
	if !m.locked {
		panic("seam: a lock is freed that nobody holds")
	}
	m.locked = false
}
