package grant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/window"
)

// The explorer checks what must never happen. The tables of this file check what it does not see: how
// much is granted, and which number is chosen.

// mine is a keeper that may have node numbers 0 to 9, at tick 1000 with a window of 100 ticks, which has
// been used up to 1005.
func mine(change ...func(*Machine)) Machine {
	m := New(Config{Owner: "host", Layout: "L", Window: 100, End: 10_000, Nodes: 10, Pinned: -1}, "me")
	for _, c := range change {
		c(&m)
	}
	return m
}

var now = Input{Now: 1000, Used: 1005, Grant: window.Range{Node: 5, From: 950, To: 1050}, Name: "new", Due: true}

func at(change func(*Input)) Input {
	in := now
	change(&in)
	return in
}

// holding holds number 5, granted from 950 to 1050.
func holding(m *Machine) {
	m.held = Held{Node: 5, Version: 7, Write: "third", Floor: 950, Limit: 1050, names: []string{"third", "zeroth"}}
}

func pinned(m *Machine) { m.Pinned = 5 }
func locker(m *Machine) { m.Locker = true }

// theirs is a cell that another process wrote.
func theirs(node int64, version, limit uint64, change ...func(*Cell)) Cell {
	c := Cell{Node: node, Version: version}
	c.Record = cell.Node{Holder: "other", Owner: "elsewhere", Floor: limit, Limit: limit, Window: 100, Write: "theirs", Layout: "L"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func free(c *Cell)      { c.Record.Holder, c.Record.Owner = "", "" }
func still(c *Cell)     { c.Still = true }
func reserved(c *Cell)  { c.Record.Reserved = true; free(c) }
func broken(c *Cell)    { c.Damaged = true }
func taken(c *Cell)     { c.Taken = true }
func none(n int64) Cell { return Cell{Node: n} }

// TestLimits has the write of a process that holds a number.
func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		in           Input
		change       func(*Machine)
		limit, floor uint64
		why          Why
	}{
		"an extension goes by what is used":     {now, nil, 1105, 950, Extend},
		"or by the clock if that is ahead":      {at(func(in *Input) { in.Now = 1020 }), nil, 1120, 950, Extend},
		"it never lowers":                       {now, func(m *Machine) { m.held.Limit = 2000 }, 2000, 950, Extend},
		"it goes up to the end":                 {now, func(m *Machine) { m.End = 1060 }, 1060, 950, Extend},
		"a release is at the first unused tick": {at(func(in *Input) { in.Closing = true }), nil, 1005, 950, Release},
		"never above the limit":                 {at(func(in *Input) { in.Closing, in.Used = true, 3000 }), nil, 1050, 950, Release},
		"never below the floor":                 {at(func(in *Input) { in.Closing, in.Used = true, 10 }), nil, 950, 950, Release},
		"at the floor if nothing was issued":    {at(func(in *Input) { in.Closing, in.Grant = true, window.Range{Node: 4, From: 950, To: 1050} }), nil, 950, 950, Release},
		"or by another claim":                   {at(func(in *Input) { in.Closing, in.Grant.From = true, 900 }), nil, 950, 950, Release},
		"or nothing was granted":                {at(func(in *Input) { in.Closing, in.Grant.To = true, 0 }), nil, 950, 950, Release},
	} {
		m := mine(holding)
		if test.change != nil {
			test.change(&m)
		}
		op := m.Next(test.in)
		if op.Kind == Seal {
			m.Done(test.in, op, Result{Used: test.in.Used})
			op = m.Next(test.in)
		}
		want := cell.Node{Holder: "me", Owner: "host", Floor: test.floor, Limit: test.limit, Window: 100, Write: "new", Last: []string{"third", "zeroth"}, Layout: "L"}
		if test.why == Release {
			want.Holder, want.Owner = "", ""
		}
		require.Equal(t, Op{Kind: Swap, Why: test.why, Node: 5, Version: 7, Record: want}, op, name)
	}
	m := mine(holding)
	require.Equal(t, Op{}, m.Next(at(func(in *Input) { in.Due = false })), "not due")
}

// TestSecondRead has the reads that follow one that looked as if the store went back. No limit tells
// whether it did: a read of an older state can show any.
func TestSecondRead(t *testing.T) {
	full := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for name, test := range map[string]struct {
		limit  uint64
		last   []string
		raises bool // by a swap on the version that was read
		events []EventKind
	}{
		"the limit is below ours":         {limit: 1049, last: full, raises: true},
		"our last write is listed":        {limit: 1200, last: []string{"a", "third"}, events: []EventKind{Trusted, Lost}},
		"one before it, and not ours":     {limit: 1200, last: append([]string{"zeroth"}, full[1:]...), raises: true},
		"all writes, and not ours":        {limit: 1200, last: full[1:], raises: true},
		"more writes than the cell lists": {limit: 1200, last: full, events: []EventKind{Lost}},
	} {
		m := mine(holding)
		m.doubt, m.suspect = true, true
		c := theirs(5, 9, test.limit)
		c.Record.Last = test.last
		op := m.Next(now)
		require.Equal(t, Op{Kind: Read, Why: Suspicion, Node: 5}, op, name)
		var kinds []EventKind
		for _, e := range m.Done(now, op, Result{Cell: c}) {
			kinds = append(kinds, e.Kind)
		}
		require.Equal(t, test.events, kinds, name)
		op = m.Next(now)
		require.Equal(t, test.raises, op.Why == Raise, name)
		if test.raises {
			require.Equal(t, []uint64{9, max(1050, test.limit)}, []uint64{op.Version, op.Record.Limit}, name)
			require.Empty(t, op.Record.Holder, name)
		} else if len(kinds) == 1 {
			require.EqualValues(t, 1200, m.least, "no claim begins below any limit that was read")
		}
	}
}

// TestClaims has what a claim does with the cells that it has listed.
func TestClaims(t *testing.T) {
	for name, test := range map[string]struct {
		machine       Machine
		cells         []Cell
		others        int64
		why           Why
		version, from uint64
		limit         uint64
	}{
		"a fresh number":                    {machine: mine(), cells: []Cell{none(3)}, why: Claim, from: 1000, limit: 1105},
		"one at the limit that stood":       {machine: mine(), cells: []Cell{theirs(3, 4, 1500, free)}, why: Claim, version: 4, from: 1500, limit: 1600},
		"one up to the end":                 {machine: mine(), cells: []Cell{theirs(3, 4, 9950, free)}, why: Claim, version: 4, from: 9950, limit: 10_000},
		"one after the store went back":     {machine: mine(func(m *Machine) { m.least = 1300 }), cells: []Cell{theirs(3, 4, 1200, free)}, why: Claim, version: 4, from: 1300, limit: 1400},
		"one that was still for long":       {machine: mine(), cells: []Cell{theirs(3, 4, 1050, still)}, why: Claim, version: 4, from: 1050, limit: 1150},
		"one that is past by a grace":       {machine: mine(), cells: []Cell{theirs(3, 4, 899)}, why: Claim, version: 4, from: 1000, limit: 1105},
		"none that is past by less":         {machine: mine(), cells: []Cell{theirs(3, 4, 900)}, why: Full},
		"none that is held":                 {machine: mine(), cells: []Cell{theirs(3, 4, 1050)}, why: Full},
		"none that another was faster for":  {machine: mine(), cells: []Cell{theirs(3, 4, 900, free, taken)}, why: Full},
		"none that is damaged":              {machine: mine(), cells: []Cell{theirs(3, 4, 0, free, broken)}, why: Full},
		"none that is reserved":             {machine: mine(), cells: []Cell{theirs(3, 4, 1001, reserved)}, why: Full},
		"one that was reserved until now":   {machine: mine(), cells: []Cell{theirs(3, 4, 1000, reserved)}, why: Claim, version: 4, from: 1000, limit: 1105},
		"a pinned one that is reserved":     {machine: mine(pinned), cells: []Cell{theirs(5, 4, 1050, reserved)}, why: Full},
		"a pinned one, whoever holds it":    {machine: mine(pinned), cells: []Cell{theirs(5, 4, 1050)}, why: Claim, version: 4, from: 1050, limit: 1150},
		"a pinned one at the end":           {machine: mine(pinned), cells: []Cell{theirs(5, 4, 10_000)}, why: EndOfTime},
		"all are at the end":                {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free), theirs(4, 4, 10_000)}, why: EndOfTime},
		"all are at the end, or held":       {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free)}, others: 1, why: Full},
		"all that are left are at the end":  {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free), theirs(4, 4, 900)}, why: Full},
		"the clock is past the end":         {machine: mine(func(m *Machine) { m.End = 1000 }), cells: []Cell{none(3)}, why: EndOfTime},
		"a locker's lock is all that there": {machine: mine(locker, func(m *Machine) { m.probe.locked, m.probe.lock, m.probe.read = true, 3, true }), cells: []Cell{theirs(3, 4, 1050)}, why: Claim, version: 4, from: 1050, limit: 1150},
	} {
		m := test.machine
		m.probe.stage, m.probe.search, m.probe.cells, m.probe.others = searching, Search{Nodes: 10, Done: 10}, test.cells, test.others
		op := m.Next(now)
		require.Equal(t, []any{test.why, test.version, test.from, test.limit}, []any{op.Why, op.Version, op.Record.Floor, op.Record.Limit}, name)
		if op.Why == Claim {
			require.Equal(t, test.cells[0].Record.Names(), op.Record.Last, name)
		}
	}
}

// Free numbers whose limit is past come before guesses, and these before those ahead.
func TestChoose(t *testing.T) {
	ready, fresh, guess := theirs(1, 4, 900, free), none(2), theirs(3, 4, 800)
	near, far, other := theirs(4, 4, 1100, free), theirs(5, 4, 5000, free), theirs(6, 4, 1050)
	for name, test := range map[string]struct {
		machine Machine
		cells   []Cell
		nodes   []int64 // any of them
		rank    Rank
	}{
		"equal ones are drawn from":     {mine(), []Cell{far, guess, ready, fresh, other}, []int64{1, 2}, Ready},
		"not from others":               {mine(), []Cell{fresh, guess}, []int64{2}, Ready},
		"then guesses":                  {mine(), []Cell{far, guess, near, other}, []int64{3}, Guess},
		"which are drawn from as well":  {mine(), []Cell{guess, theirs(7, 4, 100), theirs(8, 4, 100)}, []int64{3, 7, 8}, Guess},
		"then the nearest ahead":        {mine(), []Cell{far, near, other}, []int64{4}, Ahead},
		"of equal ones the lowest":      {mine(), []Cell{theirs(7, 4, 1100, free), near, far}, []int64{4}, Ahead},
		"a limit at the clock is ready": {mine(), []Cell{near, theirs(7, 4, 1000, free)}, []int64{7}, Ready},
		"and nothing else":              {mine(), []Cell{other}, []int64{0}, NoRank},
		"a locker reuses cells":         {mine(locker), []Cell{none(0), other, ready}, []int64{1}, Ready},
		"a locker takes the lowest":     {mine(locker), []Cell{none(2), none(1)}, []int64{1}, Ready},
		"also of cells":                 {mine(locker), []Cell{guess, ready, other}, []int64{1}, Ready},
		"after the store went back":     {mine(func(m *Machine) { m.least = 1001 }), []Cell{fresh}, []int64{2}, Ahead},
		"a pinned number is the only":   {mine(func(m *Machine) { m.Pinned = 0 }), []Cell{theirs(0, 4, 1050)}, []int64{0}, Ready},
	} {
		seen := map[int64]bool{}
		for pick := range uint64(9) {
			best, rank := test.machine.choose(Input{Now: 1000, Pick: pick}, test.cells)
			require.Equal(t, test.rank, rank, name)
			require.Contains(t, test.nodes, best.Node, name)
			seen[best.Node] = true
		}
		require.Len(t, seen, len(test.nodes), name)
	}
}

func TestTimeIsOver(t *testing.T) {
	over, m := theirs(1, 4, 10_000), mine()
	for _, test := range []struct {
		cells []Cell
		want  bool
	}{
		{nil, true},
		{[]Cell{over, over}, true},
		{[]Cell{over, theirs(2, 4, 9_999)}, false},
		{[]Cell{over, theirs(2, 4, 10_000, taken)}, false},
		{[]Cell{over, theirs(2, 4, 10_000, broken)}, false},
	} {
		require.Equal(t, test.want, m.timeIsOver(test.cells), "%+v", test.cells)
	}
}
