package protocol_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/protocol"
)

// base is a keeper at tick 1000 with a window of 100, whose window has been used up to 1005.
var base = protocol.State{
	Token: "me", Owner: "host", Layout: "L", Window: 100, End: 10_000, Node: -1,
	Now: 1000, Used: 1005, Name: "new", Due: true,
}

// holding is base with node number 5, granted from 950 to 1050.
func holding(change ...func(*protocol.State)) protocol.State {
	s := base
	s.Held = &protocol.Held{Node: 5, Version: 7, Floor: 950, Limit: 1050, Names: []string{"third", "zeroth"}}
	s.Issued = true
	for _, c := range change {
		c(&s)
	}
	return s
}

func with(change ...func(*protocol.State)) protocol.State {
	s := base
	for _, c := range change {
		c(&s)
	}
	return s
}

func pending(s *protocol.State)  { s.Held.Pending = []string{"first", "second"} }
func closing(s *protocol.State)  { s.Closing = true }
func unissued(s *protocol.State) { s.Issued = false }
func pinned(s *protocol.State)   { s.Node = 5 }
func locker(s *protocol.State)   { s.Locker = true }
func wentBack(s *protocol.State) { s.Raise = &protocol.Raise{Node: 5, Limit: 1050} }

// theirs is a cell that another process wrote.
func theirs(node int64, version, limit uint64, change ...func(*protocol.Cell)) protocol.Cell {
	c := protocol.Cell{Node: node, Version: version}
	c.Record = cell.Node{Holder: "other", Owner: "elsewhere", Floor: limit, Limit: limit, Window: 100, Write: "theirs", Layout: "L"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func named(name string) func(*protocol.Cell) { return func(c *protocol.Cell) { c.Record.Write = name } }
func begun(floor uint64) func(*protocol.Cell) {
	return func(c *protocol.Cell) { c.Record.Floor = floor }
}
func released(c *protocol.Cell) { c.Record.Holder, c.Record.Owner = "", "" }
func still(c *protocol.Cell)    { c.Still = true }
func taken(c *protocol.Cell)    { c.Taken = true }
func broken(c *protocol.Cell)   { c.Damaged = true }
func reserved(c *protocol.Cell) { c.Record.Reserved = true; released(c) }

func read(c protocol.Cell) protocol.Read           { return protocol.Read{Held: &c} }
func candidates(cs ...protocol.Cell) protocol.Read { return protocol.Read{Cells: cs} }
func absent(node int64) protocol.Cell              { return protocol.Cell{Node: node} }

// TestDecide has a row for each rule of the protocol. want.Node, Version, Limit and Floor
// are those of the write, or of what is held afterwards.
func TestDecide(t *testing.T) {
	type want struct {
		kind         protocol.Kind
		node         int64
		version      uint64
		limit, floor uint64
		free         bool // the record has no holder
	}
	for name, test := range map[string]struct {
		state protocol.State
		read  protocol.Read
		want  want
	}{
		"extend without a read":                       {holding(), protocol.Read{}, want{kind: protocol.Extend, node: 5, version: 7, limit: 1105, floor: 950}},
		"extend by the clock if it is ahead":          {holding(func(s *protocol.State) { s.Now = 1020 }), protocol.Read{}, want{kind: protocol.Extend, node: 5, version: 7, limit: 1120, floor: 950}},
		"extend never lowers":                         {holding(func(s *protocol.State) { s.Held.Limit = 2000 }), protocol.Read{}, want{kind: protocol.Extend, node: 5, version: 7, limit: 2000, floor: 950}},
		"extend up to the end":                        {holding(func(s *protocol.State) { s.End = 1060 }), protocol.Read{}, want{kind: protocol.Extend, node: 5, version: 7, limit: 1060, floor: 950}},
		"not due":                                     {holding(func(s *protocol.State) { s.Due = false }), protocol.Read{}, want{kind: protocol.Nothing}},
		"nothing has landed: again":                   {holding(pending), read(theirs(5, 7, 1050)), want{kind: protocol.Extend, node: 5, version: 7, limit: 1105, floor: 950}},
		"an unknown extension has landed":             {holding(pending), read(theirs(5, 9, 1090, named("second"))), want{kind: protocol.Adopt, node: 5, version: 9, limit: 1090, floor: 950}},
		"our token with another name":                 {holding(pending), read(theirs(5, 9, 1090, func(c *protocol.Cell) { c.Record.Holder = "me" })), want{kind: protocol.Lost, node: 5}},
		"another took the cell":                       {holding(), read(theirs(5, 9, 1200)), want{kind: protocol.Lost, node: 5}},
		"another took it and released":                {holding(), read(theirs(5, 9, 1050, released)), want{kind: protocol.Lost, node: 5}},
		"the cell is damaged":                         {holding(), read(theirs(5, 9, 0, broken)), want{kind: protocol.Lost, node: 5}},
		"the cell is gone":                            {holding(), read(absent(5)), want{kind: protocol.WentBack, node: 5}},
		"the limit is below ours":                     {holding(), read(theirs(5, 9, 1049)), want{kind: protocol.WentBack, node: 5}},
		"another claim began below our limit":         {holding(), read(theirs(5, 9, 1200, begun(1049))), want{kind: protocol.WentBack, node: 5}},
		"and was released":                            {holding(), read(theirs(5, 9, 1200, begun(1049), released)), want{kind: protocol.WentBack, node: 5}},
		"a copy of our memory goes on with our claim": {holding(), read(theirs(5, 9, 1200, begun(950), func(c *protocol.Cell) { c.Record.Holder = "me" })), want{kind: protocol.Lost, node: 5}},
		"so it is by our version":                     {holding(), read(theirs(5, 7, 1049)), want{kind: protocol.WentBack, node: 5}},
		"so it is by a name of ours":                  {holding(pending), read(theirs(5, 9, 1049, named("first"))), want{kind: protocol.WentBack, node: 5}},
		"release at the first unused tick":            {holding(closing), protocol.Read{}, want{kind: protocol.Release, node: 5, version: 7, limit: 1005, free: true}},
		"release never above the limit":               {holding(closing, func(s *protocol.State) { s.Used = 3000 }), protocol.Read{}, want{kind: protocol.Release, node: 5, version: 7, limit: 1050, free: true}},
		"release never below the floor":               {holding(closing, func(s *protocol.State) { s.Used = 10 }), protocol.Read{}, want{kind: protocol.Release, node: 5, version: 7, limit: 950, free: true}},
		"release of what was not issued under":        {holding(closing, unissued), protocol.Read{}, want{kind: protocol.Release, node: 5, version: 7, limit: 950, free: true}},
		"release of what was lost":                    {holding(closing), read(theirs(5, 9, 1200)), want{kind: protocol.Lost, node: 5}},
		"release of what has landed":                  {holding(closing, pending), read(theirs(5, 9, 1090, named("first"))), want{kind: protocol.Adopt, node: 5, version: 9, limit: 1090, floor: 950}},
		"our release has landed":                      {holding(closing, pending), read(theirs(5, 9, 1005, named("second"), released)), want{kind: protocol.Released, node: 5}},
		"closed when an unknown claim has landed": {
			with(closing, func(s *protocol.State) { s.Claims = []protocol.Pending{{Node: 3, Name: "b", Floor: 900}} }),
			protocol.Read{Claimed: []protocol.Cell{theirs(3, 8, 1100, named("b"))}},
			want{kind: protocol.Adopt, node: 3, version: 8, limit: 1100, floor: 900},
		},
		"closed without a cell": {with(closing), candidates(absent(3)), want{kind: protocol.Nothing}},

		"claim a fresh number":               {base, candidates(absent(3)), want{kind: protocol.Claim, node: 3, limit: 1105, floor: 1000}},
		"claim at the limit that stood":      {base, candidates(theirs(3, 4, 1500, released)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1600, floor: 1500}},
		"claim up to the end":                {base, candidates(theirs(3, 4, 9950, released)), want{kind: protocol.Claim, node: 3, version: 4, limit: 10_000, floor: 9950}},
		"claim after the store went back":    {with(func(s *protocol.State) { s.Least = 1300 }), candidates(theirs(3, 4, 1200, released)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1400, floor: 1300}},
		"claim what was still for long":      {base, candidates(theirs(3, 4, 1050, still)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1150, floor: 1050}},
		"claim what is past by a grace":      {base, candidates(theirs(3, 4, 899)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1105, floor: 1000}},
		"not what is past by less":           {base, candidates(theirs(3, 4, 900)), want{kind: protocol.Full}},
		"not what is held":                   {base, candidates(theirs(3, 4, 1050)), want{kind: protocol.Full}},
		"not what another was faster for":    {base, candidates(theirs(3, 4, 900, released, taken)), want{kind: protocol.Full}},
		"not what is damaged":                {base, candidates(theirs(3, 4, 0, released, broken)), want{kind: protocol.Full}},
		"not what is reserved":               {base, candidates(theirs(3, 4, 1001, reserved)), want{kind: protocol.Full}},
		"what was reserved until now":        {base, candidates(theirs(3, 4, 1000, reserved)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1105, floor: 1000}},
		"a locker's lock is all that counts": {with(locker), candidates(theirs(3, 4, 1050)), want{kind: protocol.Claim, node: 3, version: 4, limit: 1150, floor: 1050}},
		"a pinned number, whoever holds it":  {with(pinned), candidates(theirs(5, 4, 1050)), want{kind: protocol.Claim, node: 5, version: 4, limit: 1150, floor: 1050}},
		"a pinned number that is reserved":   {with(pinned), candidates(theirs(5, 4, 1050, reserved)), want{kind: protocol.Full}},
		"a pinned number at the end":         {with(pinned), candidates(theirs(5, 4, 10_000)), want{kind: protocol.EndOfTime}},
		"all numbers are at the end":         {base, candidates(theirs(3, 4, 10_000, released), theirs(4, 4, 10_000)), want{kind: protocol.EndOfTime}},
		"all but one that is held":           {base, protocol.Read{Cells: []protocol.Cell{theirs(3, 4, 10_000, released)}, Others: 1}, want{kind: protocol.Full}},
		"the clock is past the end":          {with(func(s *protocol.State) { s.Now = 10_000 }), candidates(absent(3)), want{kind: protocol.EndOfTime}},
		"an unknown claim has landed": {
			with(func(s *protocol.State) {
				s.Claims = []protocol.Pending{{Node: 2, Name: "a", Floor: 800}, {Node: 3, Name: "b", Floor: 900}}
			}),
			protocol.Read{Claimed: []protocol.Cell{theirs(2, 6, 1000), theirs(3, 8, 1100, named("b"))}, Cells: []protocol.Cell{absent(9)}},
			want{kind: protocol.Adopt, node: 3, version: 8, limit: 1100, floor: 900},
		},
		"it has not": {
			with(func(s *protocol.State) { s.Claims = []protocol.Pending{{Node: 3, Name: "b", Floor: 900}} }),
			protocol.Read{Claimed: []protocol.Cell{theirs(3, 8, 1100)}, Cells: []protocol.Cell{absent(9)}},
			want{kind: protocol.Claim, node: 9, limit: 1105, floor: 1000},
		},

		"raise the cell of a store that went back": {with(wentBack), read(theirs(5, 9, 1049)), want{kind: protocol.Lift, node: 5, version: 9, limit: 1050, free: true}},
		"raise one that is gone":                   {with(wentBack), read(absent(5)), want{kind: protocol.Lift, node: 5, limit: 1050, free: true}},
		"it is raised":                             {with(wentBack), read(theirs(5, 9, 1050)), want{kind: protocol.Lifted, node: 5}},
		"raised before anything else":              {holding(wentBack, closing), read(theirs(5, 9, 1050)), want{kind: protocol.Lifted, node: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			d := protocol.Decide(test.state, test.read)
			got := want{kind: d.Kind, node: d.Node, version: d.Version, limit: d.Record.Limit}
			switch d.Kind {
			case protocol.Adopt:
				got.version, got.limit, got.floor = d.Held.Version, d.Held.Limit, d.Held.Floor
				require.Empty(t, d.Held.Pending)
				require.Len(t, d.Held.Names, 1, "that of the write that was read")
			case protocol.Extend, protocol.Claim:
				require.Equal(t, d.Record.Limit, d.Held.Limit, "what is granted is what is written")
				require.Equal(t, d.Node, d.Held.Node)
				require.Equal(t, d.Record.Floor, d.Held.Floor)
				got.floor = d.Held.Floor
			case protocol.Lost, protocol.WentBack, protocol.Released:
				got.limit = 0
			}
			if d.Kind.Writes() {
				var before []string // the names that the cell has
				switch c := test.read.Held; {
				case d.Kind == protocol.Claim:
					i := slices.IndexFunc(test.read.Cells, func(c protocol.Cell) bool { return c.Node == d.Node })
					before = test.read.Cells[i].Record.Names()
				case d.Kind == protocol.Lift:
					before = c.Record.Names()
				default:
					before = test.state.Held.Names
				}
				require.Equal(t, before, d.Record.Last)
				if d.Held.Limit > 0 {
					require.Equal(t, d.Record.Names(), d.Held.Names)
				}
				require.Equal(t, "new", d.Record.Write, "each write has a name of its own")
				require.Equal(t, "L", d.Record.Layout)
				got.free = d.Record.Holder == "" && d.Record.Owner == ""
				require.True(t, got.free || d.Record.Holder == "me" && d.Record.Owner == "host")
			}
			require.Equal(t, test.want, got)
		})
	}
}

// Free numbers whose limit is past come before guesses, and these before those ahead.
func TestChoose(t *testing.T) {
	ready, fresh, guess := theirs(1, 4, 900, released), absent(2), theirs(3, 4, 800)
	near, far, other := theirs(4, 4, 1100, released), theirs(5, 4, 5000, released), theirs(6, 4, 1050)
	for name, test := range map[string]struct {
		state protocol.State
		cells []protocol.Cell
		nodes []int64 // any of them
		rank  protocol.Rank
	}{
		"equal ones are drawn from":   {base, []protocol.Cell{far, guess, ready, fresh, other}, []int64{1, 2}, protocol.Ready},
		"then guesses":                {base, []protocol.Cell{far, guess, near, other}, []int64{3}, protocol.Guess},
		"then the nearest ahead":      {base, []protocol.Cell{far, near, other}, []int64{4}, protocol.Ahead},
		"and nothing else":            {base, []protocol.Cell{other}, []int64{0}, protocol.None},
		"a locker reuses cells":       {with(locker), []protocol.Cell{absent(0), other, ready}, []int64{1}, protocol.Ready},
		"a locker takes the lowest":   {with(locker), []protocol.Cell{absent(2), absent(1)}, []int64{1}, protocol.Ready},
		"after the store went back":   {with(func(s *protocol.State) { s.Least = 1001 }), []protocol.Cell{fresh}, []int64{2}, protocol.Ahead},
		"a pinned number is the only": {with(func(s *protocol.State) { s.Node = 6 }), []protocol.Cell{ready, other}, []int64{6}, protocol.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[int64]bool{}
			for pick := range uint64(8) {
				test.state.Pick = pick
				best, rank := test.state.Choose(test.cells)
				require.Equal(t, test.rank, rank)
				require.Contains(t, test.nodes, best.Node)
				seen[best.Node] = true
			}
			require.Len(t, seen, len(test.nodes))
		})
	}
}
