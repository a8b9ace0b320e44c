package lease

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/span"
)

// This file compares our clock with those of others, by the cells that a claim reads anyway. Nothing of the protocol
// depends on it.

// ahead is how far a tick lies ahead of our clock. doubtful says that no process with this window has been granted the
// time before it by a clock like ours: it is a minute and two windows, the larger of that and ours, behind.
func (k *Keeper) ahead(tick, window uint64) (by time.Duration, doubtful bool) {
	now := k.tick()
	return k.between(now, tick), k.between(max(now, k.fleet.Floor), tick)-2*k.between(0, max(window, k.config.window)) > time.Minute
}

// witness looks among cells that a claim has read for a grant that lies too far ahead of our clock. Reservations and
// past numbers lie ahead on purpose. It logs one, and the error is that of a strict first claim.
func (k *Keeper) witness(cells ...grant.Cell) error {
	for _, c := range cells {
		r := c.Record
		by, doubtful := k.ahead(r.Limit, r.Window)
		if !doubtful || r.Reserved || r.Past != "" || r.Limit >= k.end() || r.Holder != "" && r.Holder == k.machine.Token() {
			continue
		}
		err := drive.Wrap(fmt.Sprintf("node number %d was granted until %s, %s ahead of this clock: this clock is behind, or an earlier one was ahead: compare it with another machine's, and start again when it is right",
			c.Node, k.time(r.Limit).Format(time.RFC3339), span.Text(by.Round(time.Second))), ErrSkew)
		switch {
		case k.strict && k.Stats().Claims == 0:
			return fmt.Errorf("%w; or, if it is right, claim without the strict check", err)
		case !k.warned && c.Node != k.node: // else the line of the claim says so
			k.warned = true
			k.log.Warn("lease: "+err.Error(), "node", c.Node)
		}
	}
	return nil
}

// sighting is the version of a cell and the elapsed time at which it was first read.
type sighting struct {
	version uint64
	since   time.Duration
}

// maxSeen bounds the sightings. Beyond it, they are dropped, and the limits of the cells
// decide.
const maxSeen = 4096

// sight notes of each cell that a claim has read whether it has had its version for two windows of our own time.
func (k *Keeper) sight(r *grant.Result) {
	k.sightCell(&r.Cell)
	for i := range r.Cells {
		k.sightCell(&r.Cells[i])
	}
}

func (k *Keeper) sightCell(c *grant.Cell) {
	if k.locking() || c.Record.Holder == "" || k.pinned() {
		return
	}
	s, ok := k.seen[c.Node]
	if !ok || s.version != c.Version {
		if len(k.seen) >= maxSeen {
			clear(k.seen)
		}
		s = sighting{version: c.Version, since: k.elapsed()}
		k.seen[c.Node] = s
	}
	c.Still = (k.elapsed()-s.since)/2 >= k.between(0, max(c.Record.Window, k.config.window)) // twice the span may overflow
}
