package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// IDs has the peer issue n IDs in virtual time, one every so often, and returns the
// lowest byte of each: that by which programs choose a shard. The first is asked for
// at a whole second. A peer that is driven in a bubble must answer within limit of
// real time, and the program must begin with [Serve].
func (p Peer) IDs(ctx context.Context, n int, every, limit time.Duration) ([]byte, error) {
	text := fmt.Sprintf("begin 2026-06-01T12:00:00Z; ids %d over %s", n, time.Duration(n)*every)
	script, err := generatortest.ParseScript(text)
	if err != nil {
		return nil, err
	}
	var l life
	if p.Driven == ByBubble {
		if l, err = p.ask(ctx, text, true, limit); err != nil {
			return nil, err
		}
	} else {
		l = p.run(script, true)
	}
	if l.Result.Skipped != "" {
		return nil, errors.New(l.Result.Skipped)
	}
	if len(l.IDs) < n { // and more if all went well, for the suite looks whether it still goes
		return nil, fmt.Errorf("%s issued %d IDs of %d: %s", p.Name, len(l.IDs), n, l.Result.Summary())
	}
	low := make([]byte, n)
	for i, id := range l.IDs[:n] {
		if low[i], err = p.low(id); err != nil {
			return nil, fmt.Errorf("%s issued %q: %w", p.Name, id, err)
		}
	}
	return low, nil
}
