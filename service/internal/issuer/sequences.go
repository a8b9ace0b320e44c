package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// entry is a sequence that is open, or being opened. Once done is closed, the other
// fields do not change.
type entry struct {
	done    chan struct{}
	err     error
	seq     *sequence.Sequence // nil until it is open; written under mu as well
	by      int64              // the stride, which never changes
	mode    sequence.Mode      // which never changes
	dropped func()
}

// Numbers is the answer to a request for numbers: first, first + Stride, …, last.
type Numbers struct {
	First, Last, Count, Stride int64
	Mode                       sequence.Mode
}

// Number returns the next n numbers of a sequence, in a row.
func (i *Issuer) Number(ctx context.Context, c *Client, name string, n int64) (Numbers, error) {
	may, err := i.enter(c, name)
	if err != nil {
		return Numbers{}, err
	}
	if err := i.batch("numbers", n, i.config.MaxNumbers); err != nil {
		return Numbers{}, err
	}
	if err := may.spend(c, n); err != nil {
		return Numbers{}, err
	}
	for again := false; ; again = true {
		got, seq, err := i.take(ctx, name, n)
		if err == nil {
			return got, nil
		}
		deleted := seq != nil && errors.Is(err, sequence.ErrDeleted)
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
	may, err := i.enter(c, name)
	if err == nil {
		err = may.spend(c, 1)
	}
	if err != nil {
		return sequence.Info{}, err
	}
	info, err := sequence.Inspect(ctx, i.config.Store, name)
	if err != nil {
		return info, i.refuseSequence(name, err)
	}
	return info, nil
}

// OpenTo returns the open sequences that the client may use, sorted by name.
func (i *Issuer) OpenTo(c *Client) []*sequence.Sequence {
	var all []*sequence.Sequence
	may, err := rightsOf(c)
	if err != nil {
		return nil
	}
	for _, e := range i.opened() {
		if may.sequence(e.seq.Name()) {
			all = append(all, e.seq)
		}
	}
	slices.SortFunc(all, func(a, b *sequence.Sequence) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// opened returns the sequences that are open.
func (i *Issuer) opened() (all []*entry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.sequences {
		if e.seq != nil {
			all = append(all, e)
		}
	}
	return all
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
// are closed or soon after ctx ends. A sequence that is being opened has no numbers yet, and is
// closed when the store has answered. The error names the sequences that could not give numbers
// back. Requests for numbers that come later are refused.
func (i *Issuer) Close(ctx context.Context) error {
	i.Drain()
	i.mu.Lock()
	i.closing = true
	i.mu.Unlock()
	i.cancel()
	open := i.opened()
	results, slots := make(chan error, len(open)), make(chan struct{}, closeAtOnce)
	for _, e := range open {
		slots <- struct{}{}
		go func() {
			e.dropped()
			results <- e.seq.CloseContext(ctx)
			<-slots
		}()
	}
	var lost []error
	for range open {
		if err := <-results; err != nil {
			lost = append(lost, err)
		}
	}
	if more := len(lost) - maxLosses; more > 0 {
		lost = append(lost[:maxLosses], fmt.Errorf("and %d more sequences did not give numbers back", more))
	}
	return errors.Join(lost...)
}

// enter refuses a request about a sequence that the client may not make, and returns the client's rights.
func (i *Issuer) enter(c *Client, name string) (*rights, error) {
	may, err := rightsOf(c)
	if err != nil {
		return nil, err
	}
	if err := sequence.CheckName(name); err != nil {
		return nil, &Refusal{Code: BadInput, Err: err}
	}
	if !may.sequence(name) {
		return nil, &Refusal{Code: Forbidden, Err: fmt.Errorf("client %s may not use sequence %s", c.Name, name)}
	}
	if i.config.Store == nil {
		return nil, &Refusal{Code: NotFound, Err: fmt.Errorf("sequence %s: this server has no store of sequences", name)}
	}
	return may, nil
}

// open returns the sequence of the name, and opens it if it is not. One caller opens it; the
// others wait.
func (i *Issuer) open(ctx context.Context, name string) (*entry, error) {
	i.mu.Lock()
	e := i.sequences[name]
	if e == nil {
		if err := i.room(name); err != nil {
			i.mu.Unlock()
			return nil, err
		}
		e = &entry{done: make(chan struct{})}
		i.sequences[name] = e
		i.opening++
		go i.fill(e, name)
	}
	i.mu.Unlock()
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

// room refuses to open another sequence if there may be none. It is called with mu.
func (i *Issuer) room(name string) error {
	switch most := i.config.MaxSequences; {
	case i.closing:
		return ErrDraining
	case len(i.sequences) < most:
		return nil
	case i.opening > 0: // some may fail, as while the store is away
		return &Refusal{Code: Unavailable, RetryAfter: time.Second, Err: fmt.Errorf("sequence %s: the server has its largest number of sequences open, %d, or is opening them: %d", name, most, i.opening)}
	default:
		return &Refusal{Code: Failed, Err: fmt.Errorf("sequence %s: the server has its largest number of sequences open, %d", name, most)}
	}
}

// fill opens the sequence of an entry. It ends soon after the timeout or Close. A failed entry is
// removed, so that the next request tries again.
func (i *Issuer) fill(e *entry, name string) {
	ctx, cancel := context.WithTimeoutCause(i.ctx, max(i.config.Timeout, time.Second), i.timeout)
	defer cancel()
	// A rule says how a sequence is created, and not how it must be: an operator may have created
	// it, or its period, or a server whose rule was another one. It makes no period, and none that was deleted.
	options := i.config.Sequences // without room to append: each append copies it
	seq, err := sequence.Open(ctx, i.config.Store, name, options...)
	if rule := i.rule(name); rule != nil && errors.Is(err, sequence.ErrNotFound) && !errors.Is(err, sequence.ErrByPeriod) && !errors.Is(err, sequence.ErrDeleted) {
		seq, err = sequence.Open(ctx, i.config.Store, name, append(options, sequence.WithDefinition(rule.Definition))...)
		if _, exists := errors.AsType[*sequence.DefinitionError](err); exists { // since a moment ago
			seq, err = sequence.Open(ctx, i.config.Store, name, options...)
		}
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
	if closing && err == nil {
		dropped()
		_ = seq.CloseContext(ctx) // it has no numbers yet, so it asks nothing of the store
	}
	if closing {
		err = sequence.ErrClosed // also if Close has ended the context
	}
	e.err = err
	close(e.done)
}

// rule returns the rule by which a sequence is created, or nil.
func (i *Issuer) rule(name string) *Create {
	for n := range i.config.Create {
		if rule := &i.config.Create[n]; strings.HasPrefix(name, rule.Prefix) {
			return rule
		}
	}
	return nil
}

// Creates reports whether the sequence is created when a number is first asked for.
func (i *Issuer) Creates(name string) bool { return i.config.Store != nil && i.rule(name) != nil }

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
		shown := fmt.Errorf("there is no sequence %s: create it in the store of the servers, with 'tickflake sequence create %s'", name, name)
		if errors.Is(err, sequence.ErrDeleted) {
			shown = err
		} else if i.Creates(name) && !errors.Is(err, sequence.ErrByPeriod) {
			shown = fmt.Errorf("there is no sequence %s yet: the first request for a number creates it, by a rule of this server", name)
		} else if wrong, ok := errors.AsType[*stores.OptionError](err); ok { // no period of the sequence has such a name
			shown = fmt.Errorf("there is no sequence %s: %w", name, wrong)
		} else if errors.Is(err, sequence.ErrByPeriod) { // which was not asked for a number yet
			shown = err
		}
		return &Refusal{Code: NotFound, Err: &hidden{shown, err}}
	}
	return i.refuse(err)
}
