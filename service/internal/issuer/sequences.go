package issuer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/sequence"
)

// entry is a sequence that is open, or being opened. Once done is closed, the other
// fields do not change.
type entry struct {
	done chan struct{}
	seq  *sequence.Sequence
	err  error
	by   int64         // the stride, which never changes
	mode sequence.Mode // which never changes

	dropped func()
}

// Numbers is the answer to a request for numbers: first, first + Stride, …, last.
type Numbers struct {
	First, Last, Count, Stride int64
	Mode                       sequence.Mode
}

// Number returns the next n numbers of a sequence, in a row.
func (i *Issuer) Number(ctx context.Context, c *Client, name string, n int64) (Numbers, error) {
	if err := i.enter(c, name); err != nil {
		return Numbers{}, err
	}
	if err := i.batch("numbers", n, i.config.MaxNumbers); err != nil {
		return Numbers{}, err
	}
	if err := c.spend(n); err != nil {
		return Numbers{}, err
	}
	for again := false; ; again = true {
		got, seq, err := i.take(ctx, name, n)
		if err == nil {
			return got, nil
		}
		deleted := errors.Is(err, sequence.ErrDeleted)
		if deleted {
			i.drop(name, seq)
		}
		if again || !deleted { // else it may have been created anew
			return Numbers{}, i.refuseSequence(name, err)
		}
	}
}

// take takes n numbers of a sequence, and opens it if it is not open.
func (i *Issuer) take(ctx context.Context, name string, n int64) (Numbers, *sequence.Sequence, error) {
	e, err := i.open(ctx, name)
	if err != nil {
		return Numbers{}, nil, err
	}
	var first int64
	if n == 1 {
		first, err = e.seq.Next(ctx)
	} else {
		first, err = e.seq.NextN(ctx, n)
	}
	return Numbers{First: first, Last: first + (n-1)*e.by, Count: n, Stride: e.by, Mode: e.mode}, e.seq, err
}

// Inspect returns the state of a sequence in the store. It takes one off the client's rate,
// since each call asks the store.
func (i *Issuer) Inspect(ctx context.Context, c *Client, name string) (sequence.Info, error) {
	if err := i.enter(c, name); err != nil {
		return sequence.Info{}, err
	}
	if err := c.spend(1); err != nil {
		return sequence.Info{}, err
	}
	info, err := sequence.Inspect(ctx, i.config.Store, name)
	if err != nil {
		return info, i.refuseSequence(name, err)
	}
	return info, nil
}

// Open returns the sequences that are open, sorted by name.
func (i *Issuer) Open() []*sequence.Sequence {
	all := i.opened()
	slices.SortFunc(all, func(a, b *sequence.Sequence) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// opened returns the sequences that are open. It does not sort them, because requests for
// numbers wait for mu.
func (i *Issuer) opened() []*sequence.Sequence {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []*sequence.Sequence
	for _, e := range i.sequences {
		select {
		case <-e.done:
			if e.err == nil {
				all = append(all, e.seq)
			}
		default:
		}
	}
	return all
}

// OpenTo returns the open sequences that the client may use, sorted by name.
func (i *Issuer) OpenTo(c *Client) []*sequence.Sequence {
	return slices.DeleteFunc(i.Open(), func(s *sequence.Sequence) bool { return c == nil || !c.may(s.Name()) })
}

// Count returns how many sequences are open, or being opened.
func (i *Issuer) Count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.sequences)
}

const (
	closeAtOnce = 64 // sequences that Close closes at a time
	maxLosses   = 10 // sequences that its error names
)

// Close closes all sequences, which gives their unused numbers back, and returns when they
// are closed or soon after ctx ends. A sequence that is being opened is closed as well. The
// error names the sequences that could not give numbers back. Requests for numbers that come
// later are refused.
func (i *Issuer) Close(ctx context.Context) error {
	i.Drain()
	i.mu.Lock()
	i.closing = true
	entries := slices.Collect(maps.Values(i.sequences))
	i.mu.Unlock()
	i.cancel()
	results, slots := make(chan error, len(entries)), make(chan struct{}, closeAtOnce)
	for _, e := range entries {
		slots <- struct{}{}
		go func() {
			results <- e.close(ctx)
			<-slots
		}()
	}
	var lost []error
	n := 0
	for range entries {
		if err := <-results; err != nil {
			if n++; n <= maxLosses {
				lost = append(lost, err)
			}
		}
	}
	if n > maxLosses {
		lost = append(lost, fmt.Errorf("and %d more sequences did not give numbers back", n-maxLosses))
	}
	return errors.Join(lost...)
}

// close closes the sequence of an entry.
func (e *entry) close(ctx context.Context) error {
	select {
	case <-e.done:
	case <-ctx.Done():
		// A store that hangs: fill closes the sequence if the store answers after all, and
		// nothing was issued.
		return nil
	}
	if e.err != nil {
		return nil
	}
	e.dropped()
	return e.seq.CloseContext(ctx)
}

// enter refuses a request about a sequence that the client may not make.
func (i *Issuer) enter(c *Client, name string) error {
	if c == nil {
		return &Refusal{Code: Unauthenticated, Err: errNoToken}
	}
	if err := sequence.CheckName(name); err != nil {
		return &Refusal{Code: BadInput, Err: err}
	}
	if !c.may(name) {
		return &Refusal{Code: Forbidden, Err: fmt.Errorf("client %s may not use sequence %s", c.Name, name)}
	}
	if i.config.Store == nil {
		return &Refusal{Code: NotFound, Err: fmt.Errorf("sequence %s: this server has no store of sequences", name)}
	}
	return nil
}

// open returns the sequence of the name, and opens it if it is not. One caller opens it; the
// others wait.
func (i *Issuer) open(ctx context.Context, name string) (*entry, error) {
	i.mu.Lock()
	e := i.sequences[name]
	if e == nil {
		if i.closing {
			i.mu.Unlock()
			return nil, &Refusal{Code: Unavailable, RetryAfter: time.Second, Err: errDraining}
		}
		if len(i.sequences) >= i.config.MaxSequences {
			opening := i.opening
			i.mu.Unlock()
			if opening > 0 { // some may fail, as while the store is away
				return nil, &Refusal{Code: Unavailable, RetryAfter: time.Second, Err: fmt.Errorf("sequence %s: the server has its largest number of sequences open, %d, or is opening them: %d", name, i.config.MaxSequences, opening)}
			}
			return nil, &Refusal{Code: Failed, Err: fmt.Errorf("sequence %s: the server has its largest number of sequences open, %d", name, i.config.MaxSequences)}
		}
		e = &entry{done: make(chan struct{})}
		i.sequences[name] = e
		i.opening++
		i.mu.Unlock()
		i.fill(e, name)
	} else {
		i.mu.Unlock()
	}
	select {
	case <-e.done: // without a look at ctx, which would start its timer
		return e, e.err
	default:
	}
	select {
	case <-e.done:
		return e, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fill opens the sequence of an entry, in a goroutine that ends soon after the timeout or
// Close. A failed entry is removed, so that the next request tries again.
func (i *Issuer) fill(e *entry, name string) {
	ctx, cancel := context.WithTimeoutCause(i.ctx, max(i.config.Timeout, time.Second), i.timeout)
	go func() {
		defer cancel()
		seq, err := sequence.Open(ctx, i.config.Store, name, i.options(name)...)
		if _, exists := errors.AsType[*sequence.DefinitionError](err); exists {
			// A rule says how a sequence is created, and not how it must be: an operator may
			// have created it, or a server whose rule was another one.
			seq, err = sequence.Open(ctx, i.config.Store, name, i.config.Sequences...)
		}
		dropped := func() {}
		if err == nil && i.config.Opened != nil {
			dropped = i.config.Opened(seq) // without mu: it may wait for a reader of Count
		}
		i.mu.Lock()
		i.opening--
		closing := i.closing
		if err == nil && !closing {
			d := seq.Definition()
			e.seq, e.by, e.mode, e.dropped = seq, d.Stride.By(), d.Mode, dropped
		} else {
			delete(i.sequences, name)
		}
		i.mu.Unlock()
		if e.err = err; closing {
			e.err = sequence.ErrClosed // also if Close has ended the context
			if err == nil {
				dropped()
				_ = seq.CloseContext(ctx) // it has no numbers yet, so it asks nothing of the store
			}
		}
		close(e.done)
	}()
}

func (i *Issuer) options(name string) []sequence.Option {
	options := i.config.Sequences
	for _, c := range i.config.Create {
		if strings.HasPrefix(name, c.Prefix) {
			return append(slices.Clone(options), sequence.WithDefinition(c.Definition))
		}
	}
	return options
}

// drop forgets a sequence that was deleted.
func (i *Issuer) drop(name string, seq *sequence.Sequence) {
	i.mu.Lock()
	e := i.sequences[name]
	ours := e != nil && e.seq == seq && !i.closing // else Close does it
	if ours {
		delete(i.sequences, name)
	}
	i.mu.Unlock()
	if ours {
		e.dropped()
	}
}

func (i *Issuer) refuseSequence(name string, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if errors.Is(err, sequence.ErrNotFound) {
		return &Refusal{Code: NotFound, Err: &hidden{fmt.Errorf("there is no sequence %s: create it in the store of the servers, with 'tickflake sequence create %s'", name, name), err}}
	}
	return i.refuse(err)
}
