package issuer

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/stores"
)

// entry is a sequence that is open, or being opened. Once done is closed, err, seq, by, mode and dropped
// do not change.
type entry struct {
	name    string
	client  *Client // who asked for it first
	done    chan struct{}
	err     error
	seq     *sequence.Sequence // nil until it is open; written under mu as well
	by      int64              // the stride, which never changes
	mode    sequence.Mode      // which never changes
	dropped func()
	users   atomic.Int64  // calls that have the entry; rises under mu only, so none comes to an entry without users under mu
	place   *list.Element // in recent; nil until the sequence is open; guarded by mu
}

// Numbers is the answer to a request for numbers: first, first + Stride, …, last. In JSON it is that of HTTP, in which
// numbers of 64 bits are texts, because a number of JavaScript keeps only 53 bits.
type Numbers struct {
	Name   string        `json:"name"`
	Mode   sequence.Mode `json:"mode"`
	First  int64         `json:"first,string"`
	Last   int64         `json:"last,string"`
	Count  int64         `json:"count"`
	Stride int64         `json:"stride"`
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
		e, err := i.find(ctx, c, name)
		if err != nil {
			return Numbers{}, i.refuseSequence(name, err)
		}
		first, err := e.take(ctx, n)
		if err == nil {
			return Numbers{name, e.mode, first, first + (n-1)*e.by, n, e.by}, nil
		}
		deleted := errors.Is(err, sequence.ErrDeleted)
		if deleted {
			i.drop(e)
		}
		if again || !deleted { // else it may have been created anew
			return Numbers{}, i.refuseSequence(name, err)
		}
	}
}

// take takes n numbers of the sequence of an entry that find returned.
func (e *entry) take(ctx context.Context, n int64) (first int64, err error) {
	defer e.users.Add(-1)
	if n == 1 {
		return e.seq.Next(ctx)
	}
	return e.seq.NextN(ctx, n)
}

// Last returns the highest number of a sequence that was granted so far, used or not. Without an error, it does not
// exist if a rule will create it. Last takes one off the client's rate, since each call asks the store.
func (i *Issuer) Last(ctx context.Context, c *Client, name string) (last int64, exists bool, err error) {
	may, err := i.enter(c, name)
	if err == nil {
		err = may.spend(c, 1)
	}
	if err != nil {
		return 0, false, err
	}
	info, err := sequence.Inspect(ctx, i.config.Store, name)
	switch {
	case i.rule(name, err) != nil:
		return 0, false, nil
	case err != nil:
		return 0, false, i.refuseSequence(name, err)
	case info.Definition.Period != sequence.Period{}:
		return 0, false, Refuse(wire.BadInput, "sequence %s: %w, %s: ask for one of its periods", name, sequence.ErrByPeriod, info.Definition.Period)
	}
	return info.Last, true, nil
}

// Count returns how many sequences are open, or being opened.
func (i *Issuer) Count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.sequences)
}

const maxLosses = 10 // sequences that the error of Close names

// Close closes all sequences, which gives their unused numbers back, and returns when they
// are closed or soon after ctx ends. A sequence that is being opened has no numbers yet, and is
// closed when the store has answered. The error names the sequences that could not give numbers
// back. Requests for numbers that come later are refused.
func (i *Issuer) Close(ctx context.Context) error {
	i.Drain()
	i.mu.Lock()
	i.closing = true
	open := slices.Collect(maps.Keys(i.leaving))
	for _, e := range i.sequences {
		if e.seq != nil {
			open = append(open, e)
		}
	}
	i.mu.Unlock()
	i.cancel()
	results, slots := make(chan error, len(open)), make(chan struct{}, limit.ClosedAtOnce)
	for _, e := range open {
		slots <- struct{}{}
		go func() {
			results <- e.end(ctx)
			<-slots
		}()
	}
	var lost []error
	for range open {
		if err := <-results; err != nil && !errors.Is(err, sequence.ErrDeleted) { // by an operator: its numbers are nobody's
			lost = append(lost, err)
		}
	}
	if more := len(lost) - maxLosses; more > 0 {
		lost = append(lost[:maxLosses], fmt.Errorf("and %d more sequences did not give numbers back", more))
	}
	return errors.Join(lost...)
}

// enter refuses a request about a sequence that the client may not make, and returns the client's rights.
func (i *Issuer) enter(c *Client, name string) (*Rights, error) {
	may, err := rightsOf(c)
	if err != nil {
		return nil, err
	}
	if err := sequence.ValidateName(name); err != nil {
		return nil, &Refusal{Code: wire.BadInput, Err: err}
	}
	if !may.sequence(name) {
		return nil, Refuse(wire.Forbidden, "client %s may not use sequence %s", c.Name, name)
	}
	if i.config.Store == nil {
		return nil, Refuse(wire.NotFound, "sequence %s: this server has no store of sequences", name)
	}
	return may, nil
}

// find returns the entry of the name, for a call that the entry counts from now on, and opens the sequence if
// it is not open. One caller opens it; the others wait.
func (i *Issuer) find(ctx context.Context, c *Client, name string) (*entry, error) {
	i.mu.Lock()
	e := i.sequences[name]
	switch {
	case e == nil && i.opening >= i.config.MaxSequences: // some may fail, as while the store is away
		i.mu.Unlock()
		return nil, Later(fmt.Errorf("sequence %s: the server is opening %d others", name, i.opening))
	case e == nil:
		e = &entry{name: name, client: c, done: make(chan struct{})}
		i.sequences[name] = e
		i.opening++
		go i.fill(e)
	case e.place != nil:
		i.recent.MoveToFront(e.place)
	}
	e.users.Add(1)
	i.mu.Unlock()
	err := error(nil)
	select {
	case <-e.done: // without a look at ctx, which would start its timer
		err = e.err
	default:
		select {
		case <-e.done:
			err = e.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		e.users.Add(-1)
		return nil, err
	}
	return e, nil
}

// fill opens the sequence of an entry, and closes one that is unused where there is no room. It ends soon after
// the timeout or Close. A failed entry is removed, so that the next request tries again.
func (i *Issuer) fill(e *entry) {
	timeout := max(i.config.Timeout, time.Second)
	ctx, cancel := context.WithTimeoutCause(i.ctx, timeout, i.timeout)
	defer cancel()
	seq, err := i.stored(ctx, e.name)
	dropped := func() {}
	if err == nil && i.observed != nil {
		dropped = i.observed.Add(seq) // without mu: it may wait for a reader of Count
	}
	var unused *entry
	i.mu.Lock()
	if i.closing { // which may have ended the context
		err = sequence.ErrClosed
	}
	if err == nil {
		unused, err = i.room(e)
	}
	if err == nil {
		d := seq.Definition()
		e.seq, e.by, e.mode, e.dropped = seq, d.Stride.By(), d.Mode, sync.OnceFunc(dropped)
		e.place = i.recent.PushFront(e)
		i.open[e.client.account]++
	} else {
		delete(i.sequences, e.name)
	}
	if unused != nil {
		i.remove(unused)
		i.leaving[unused] = true
		i.evicted.Add(1)
	}
	i.mu.Unlock()
	if err != nil && seq != nil {
		dropped()
		_ = seq.CloseContext(ctx) // it has no numbers yet, so it asks nothing of the store
	}
	if unused != nil { // the call waits, so that no more are about to be closed than are being opened
		ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, i.timeout)
		defer cancel()
		_ = unused.end(ctx) // it logs what it could not give back
	}
	i.mu.Lock()
	i.opening--
	delete(i.leaving, unused)
	i.mu.Unlock()
	e.err = err
	close(e.done)
}

// stored opens a sequence of the store, or creates it by a rule.
func (i *Issuer) stored(ctx context.Context, name string) (*sequence.Sequence, error) {
	// A rule says how a sequence is created, and not how it must be: an operator may have created
	// it, or its period, or a server whose rule was another one.
	options := i.config.Sequences // without room to append: each append copies it
	seq, err := sequence.Open(ctx, i.config.Store, name, options...)
	if d := i.rule(name, err); d != nil {
		seq, err = sequence.Open(ctx, i.config.Store, name, append(options, sequence.WithDefinition(*d))...)
		if _, exists := errors.AsType[*sequence.DefinitionError](err); exists { // since a moment ago
			seq, err = sequence.Open(ctx, i.config.Store, name, options...)
		}
	}
	return seq, err
}

// room returns the entry that has to go for another one of its client, or nil if there is room: of the client if that
// is at its bound, else of the client that would have the most open, the one that was not used for longest. It is
// called with mu. What it says does not name another client.
func (i *Issuer) room(e *entry) (*entry, error) {
	from, most, whose := e.client.account, i.open[e.client.account], "the client uses all that it may have open"
	if may := e.client.rights.Load(); may == nil || may.MaxSequences == 0 || most < may.MaxSequences {
		if i.recent.Len() < i.config.MaxSequences {
			return nil, nil
		}
		whose = "the server's open sequences are all in use"
		for client, n := range i.open {
			if n > most {
				from, most = client, n
			}
		}
	}
	for at := i.recent.Back(); at != nil; at = at.Prev() {
		if one := at.Value.(*entry); one.client.account == from && one.users.Load() == 0 {
			return one, nil
		}
	}
	return nil, Later(fmt.Errorf("sequence %s: there is no room: %s", e.name, whose))
}

// remove takes an entry out that is open. It is called with mu.
func (i *Issuer) remove(e *entry) {
	delete(i.sequences, e.name)
	i.recent.Remove(e.place)
	if i.open[e.client.account]--; i.open[e.client.account] == 0 {
		delete(i.open, e.client.account)
	}
}

// end ends the metrics of a sequence, and gives its numbers back.
func (e *entry) end(ctx context.Context) error {
	e.dropped()
	return e.seq.CloseContext(ctx)
}

// rule returns the definition by which the server creates a sequence that the store did not find, with err, or nil. No
// rule makes a period, or a sequence that was deleted.
func (i *Issuer) rule(name string, err error) *sequence.Definition {
	if !errors.Is(err, sequence.ErrNotFound) || errors.Is(err, sequence.ErrByPeriod) || errors.Is(err, sequence.ErrDeleted) {
		return nil
	}
	for n := range i.config.Rules {
		if strings.HasPrefix(name, i.config.Rules[n].Prefix) {
			return &i.config.Rules[n].Definition
		}
	}
	return nil
}

// drop forgets a sequence that was deleted.
func (i *Issuer) drop(e *entry) {
	i.mu.Lock()
	ours := i.sequences[e.name] == e && !i.closing // else Close does it
	if ours {
		i.remove(e)
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
		text := fmt.Sprintf("there is no sequence %s: create it with 'tickflake sequence create %[1]s' and the --store of the servers", name)
		if at := strings.LastIndexByte(name, '.'); at > 0 {
			text += fmt.Sprintf(", or %s, if its numbers begin anew each year, month or day, with --period too", name[:at])
		}
		shown := errors.New(text)
		if wrong, ok := errors.AsType[*stores.OptionError](err); ok { // no period of the sequence has such a name
			shown = fmt.Errorf("there is no sequence %s: %w", name, wrong)
		} else if errors.Is(err, sequence.ErrDeleted) || errors.Is(err, sequence.ErrByPeriod) { // a period that was not asked for a number yet
			shown = err
		}
		return &Refusal{Code: wire.NotFound, Err: &hidden{shown, err}}
	}
	return i.refuse(err)
}
