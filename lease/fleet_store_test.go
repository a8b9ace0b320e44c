package lease_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/stores"
)

// newStore makes the cells of a run: those of the node numbers, and that of the layout after
// them.
func (f *fleet) newStore() {
	var keys []string
	for node := range f.numbers() {
		keys = append(keys, cell.NodeKey(node))
	}
	f.Store = f.NewStore(append(keys, cell.LayoutKey))
	f.Store.Landed = func(p *fleettest.Process, c int, value []byte) {
		if node := int64(c); node < f.numbers() {
			limit, _ := peek(value)
			f.landed(p, node, f.limits[node], limit)
			f.limits[node] = limit
			f.Note(uint64(node)<<48 ^ limit)
		}
	}
	f.Store.Rewound = func(c int, value []byte) {
		if node := int64(c); node < f.numbers() {
			limit := uint64(0)
			if value != nil {
				limit, _ = peek(value)
			}
			f.rewound(node, f.limits[node], limit)
			f.limits[node] = limit
		}
	}
	f.Store.Text = func(value []byte) string {
		if !bytes.Contains(value, []byte(limitField)) {
			return string(value)
		}
		limit, holder := peek(value)
		return fmt.Sprintf("limit %s, held %v", f.tickText(limit), holder)
	}
}

const limitField = `"limit":`

// peek reads the limit of a record, and whether there is a holder, without the cost
// of decoding it.
func peek(value []byte) (limit uint64, holder bool) {
	i := bytes.Index(value, []byte(limitField))
	digits := value[i+len(limitField):]
	n := bytes.IndexByte(digits, ',')
	limit, err := strconv.ParseUint(string(digits[:n]), 10, 64)
	if err != nil {
		panic(err)
	}
	return limit, bytes.Contains(value[:i], []byte(`"holder":`))
}

// lockingClient is a process's way to a store that knows who is alive.
type lockingClient struct {
	fleettest.Client
	f *fleet
	p *process
}

type lockToken struct{ by *process }

func (c lockingClient) TryLock(ctx context.Context, key string) (func(), error) {
	f := c.f
	f.Current.Hiccup()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if f.locks[key] != nil {
		return nil, errOccupied
	}
	token := &lockToken{c.p}
	f.locks[key] = token
	if f.Trace != nil {
		f.Current.Tracef("locks %s", key)
	}
	return func() {
		if f.locks[key] == token {
			delete(f.locks, key)
		}
	}, nil
}

var errOccupied = fmt.Errorf("fleet: %w", stores.ErrLocked)

// unlock takes the locks of a process that has ended away.
func (f *fleet) unlock(p *process) {
	for key, token := range f.locks {
		if token.by == p {
			delete(f.locks, key)
		}
	}
}

// tickText shows a tick as the time from the start of the run, by a true clock.
func (f *fleet) tickText(tick uint64) string {
	at := f.layout.Epoch.Add(time.Duration(tick) * f.layout.Tick)
	return fmt.Sprintf("%d (%s)", tick, at.Sub(fleettest.Start))
}
