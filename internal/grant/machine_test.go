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
	m := New(Config{Owner: "host", Layout: "L", Window: 100, End: 10_000, Pinned: -1}, "me")
	m.probe.fleet.Nodes = ten
	for _, c := range change {
		c(&m)
	}
	return m
}

var ten = cell.Nodes{To: 10}

var now = Input{Now: 1000, Used: 1005, Grant: window.Range{Node: 5, From: 950, To: 1050}, Name: "new", Due: true}

func at(change func(*Input)) Input {
	in := now
	change(&in)
	return in
}

// holding holds number 5, granted from 950 to 1050.
func holding(m *Machine) {
	m.held = Held{Node: 5, Version: 7, Write: "third", Floor: 950, Limit: 1050, names: []string{"third", "zeroth"}, acknowledged: 1050}
}

func pinned(m *Machine) { m.Pinned = 5 }
func locker(m *Machine) { m.Locker = true }

// thousand is before the first list of 1,000 numbers.
func thousand(m *Machine) { m.probe.fleet.Nodes.To, m.probe.stage = 1000, firstUnread }

// theirs is a cell that another process wrote.
func theirs(node int64, version, limit uint64, change ...func(*Cell)) Cell {
	c := Cell{Node: node, Version: version}
	c.Record = cell.Node{Holder: "other", Owner: "elsewhere", Floor: limit, Limit: limit, Window: 100, Write: "theirs", Layout: "L"}
	for _, f := range change {
		f(&c)
	}
	return c
}

// done tells a machine the results of its next operations, and returns what has happened.
func (m *Machine) done(in Input, results ...Result) (kinds []EventKind) {
	for _, r := range results {
		for _, e := range m.Done(in, m.Next(in), r) {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func free(c *Cell)      { c.Record.Holder, c.Record.Owner = "", "" }
func still(c *Cell)     { c.Still = true }
func reserved(c *Cell)  { c.Record.Reserved = true; free(c) }
func left(c *Cell)      { c.Record.MovedTo, c.Record.Later = "new", true; free(c) }
func ofPast(c *Cell)    { c.Record.Past = cell.Given; free(c) }
func broken(c *Cell)    { c.Damaged = true }
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
		"it raises by a tick at least":          {now, func(m *Machine) { m.held.Limit = 2000 }, 2001, 950, Extend},
		"it goes up to the end":                 {now, func(m *Machine) { m.End = 1060 }, 1060, 950, Extend},
		"a release is at the first unused tick": {at(func(in *Input) { in.Closing = true }), nil, 1005, 950, Release},
		"never above the limit":                 {at(func(in *Input) { in.Closing, in.Used = true, 3000 }), nil, 1050, 950, Release},
		"never below the floor":                 {at(func(in *Input) { in.Closing, in.Used = true, 10 }), nil, 950, 950, Release},
		"or nothing was granted":                {at(func(in *Input) { in.Closing, in.Grant.To = true, 0 }), nil, 950, 950, Release},
	} {
		m := mine(holding)
		if test.change != nil {
			test.change(&m)
		}
		if test.in.Closing {
			m.done(test.in, Result{Used: test.in.Used}) // of Seal
		}
		want := cell.Node{Holder: "me", Owner: "host", Floor: test.floor, Limit: test.limit, Window: 100, Write: "new", Last: []string{"third", "zeroth"}, Layout: "L"}
		if test.why == Release {
			want.Holder, want.Owner = "", ""
		}
		require.Equal(t, Op{Kind: Swap, Why: test.why, Node: 5, Version: 7, Record: want}, m.Next(test.in), name)
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
		"all writes, and not ours":        {limit: 1200, last: full[1:], raises: true},
		"more writes than the cell lists": {limit: 1200, last: full, events: []EventKind{Lost}},
	} {
		m := mine(holding)
		m.doubt, m.suspect = true, true
		c := theirs(5, 9, test.limit, left)
		c.Record.Last = test.last
		op := m.Next(now)
		require.Equal(t, Op{Kind: Read, Why: Suspicion, Node: 5}, op, name)
		require.Equal(t, test.events, m.done(now, Result{Cell: c}), name)
		op = m.Next(now)
		require.Equal(t, test.raises, op.Why == Raise, name)
		if test.raises {
			require.Equal(t, []uint64{9, max(1050, test.limit)}, []uint64{op.Version, op.Record.Limit}, name)
			require.Empty(t, op.Record.Holder, name)
			require.Equal(t, []any{"new", true}, []any{op.Record.MovedTo, op.Record.Later}, "what has left stays final")
		} else if len(test.events) == 1 {
			require.EqualValues(t, 1200, m.least, "no claim begins below any limit that was read")
		}
	}
}

// ours is a read of the cell of holding, with a write of this process.
func ours(write string, limit uint64, change ...func(*Cell)) Result {
	c := Cell{Node: 5, Version: 8, Record: cell.Node{Holder: "me", Floor: 950, Limit: limit, Write: write}}
	for _, f := range change {
		f(&c)
	}
	return Result{Cell: c}
}

// others is a read of the cell of holding, with a claim of another process.
func others(floor, limit uint64, last ...string) Result {
	c := theirs(5, 9, limit)
	c.Record.Floor, c.Record.Last = floor, last
	return Result{Cell: c}
}

// TestHeld has the results of operations on the held cell, what has happened, and the next operation.
func TestHeld(t *testing.T) {
	doubt := func(m *Machine) { holding(m); m.doubt, m.held.Pending = true, []string{"first", "second"} }
	suspect := func(m *Machine) { doubt(m); m.suspect = true }
	pinned0 := func(m *Machine) { m.Pinned, m.held.Node = 0, 0 }
	atZero := func(m *Machine) { m.held.Floor, m.held.Limit = 0, 0 }
	closing := at(func(in *Input) { in.Closing = true })
	gone, failed, damaged := Result{}, Result{Status: Failed}, Result{Status: Damaged}
	for _, test := range []struct {
		name    string
		m       Machine
		in      Input
		results []Result
		kinds   []EventKind
		next    OpKind
		why     Why
	}{
		{"or that is unknown", mine(holding), now, []Result{failed}, nil, Read, Doubt},
		{"it is released", mine(holding), closing, []Result{{Used: 1005}, {Version: 8}}, []EventKind{Released}, None, Idle},

		{"nothing has landed", mine(doubt), now, []Result{ours("third", 1050)}, nil, Swap, Extend},
		{"one that raises nothing has", mine(doubt), now, []Result{ours("first", 1050)}, []EventKind{Extended}, Swap, Extend},
		{"an extension has landed", mine(doubt), now, []Result{ours("second", 1150)}, []EventKind{Extended}, Swap, Extend},
		{"the read failed", mine(doubt), now, []Result{failed}, nil, Read, Doubt},
		{"a copy of this process has it", mine(doubt), now, []Result{ours("copy", 1150)}, []EventKind{Lost}, Read, OfFleet},
		{"it has left", mine(doubt), now, []Result{{Cell: Cell{Node: 5, Version: 9, Record: Final(ours("third", 1050).Cell.Record, 0, false, "new", "final")}}}, []EventKind{Lost}, Read, OfFleet},
		{"it was the only one", mine(doubt, pinned), now, []Result{others(1050, 1150)}, []EventKind{Lost}, None, Over},
		{"also if it is number 0", mine(doubt, pinned0), now, []Result{others(1050, 1150)}, []EventKind{Lost}, None, Over},
		{"also number 0", mine(doubt, pinned0), now, []Result{damaged}, []EventKind{Broken}, Read, Doubt},

		{"it is gone", mine(doubt), now, []Result{gone}, []EventKind{Suspected}, Read, Suspicion},
		{"also one up to tick 0", mine(doubt, atZero), now, []Result{gone}, []EventKind{Suspected}, Read, Suspicion},
		{"its limit is lower", mine(doubt), now, []Result{others(1049, 1049, "third")}, []EventKind{Suspected}, Read, Suspicion},
		{"also that of our write", mine(doubt), now, []Result{ours("first", 1049)}, []EventKind{Suspected}, Read, Suspicion},
		{"an older write of ours is no other process", mine(holding), closing, []Result{{Used: 1005}, failed, ours("zeroth", 1040)}, []EventKind{Suspected}, Read, Suspicion},
		{"a claim began below it", mine(doubt), now, []Result{others(1049, 1150)}, []EventKind{Suspected}, Read, Suspicion},
		{"it was an older state", mine(suspect), now, []Result{ours("third", 1050)}, []EventKind{Trusted}, Swap, Extend},
		{"and an extension has landed", mine(suspect), now, []Result{ours("first", 1150)}, []EventKind{Trusted, Extended}, Swap, Extend},
		{"and another process has it", mine(suspect), now, []Result{others(1050, 1150, "third")}, []EventKind{Trusted, Lost}, Read, OfFleet},
		{"and raised", mine(suspect), now, []Result{gone, {Version: 9}}, []EventKind{WentBack}, Read, OfFleet},
		{"and raised, or that is unknown", mine(suspect), now, []Result{gone, failed}, nil, Read, Suspicion},
	} {
		m := test.m
		require.Equal(t, test.kinds, m.done(test.in, test.results...), test.name)
		op := m.Next(test.in)
		require.Equal(t, []any{test.next, test.why}, []any{op.Kind, op.Why}, test.name)
		require.Equal(t, test.name == "a copy of this process has it", m.Token() == "new", "what a copy wrote is not ours")
	}
}

// TestClaiming has the results of the operations of a claim on numbers 0 to 9, what has happened, and
// the next operation.
func TestClaiming(t *testing.T) {
	gone, failed, conflict, damaged, locked := Result{}, Result{Status: Failed}, Result{Status: Conflict}, Result{Status: Damaged}, Result{Status: Locked}
	done, read := Result{Version: 9, Fleet: Fleet{Nodes: ten}}, func(c Cell) Result { return Result{Cell: c} }
	fleet := func(f Fleet) Result { return Result{Cell: Cell{Node: FleetNode, Version: 3}, Fleet: f} }
	layout := fleet(Fleet{Nodes: ten})
	// All numbers are held but for 3 and 4.
	cells := []Cell{theirs(3, 4, 900, free), theirs(4, 4, 950, free)}
	for _, n := range []int64{0, 1, 2, 5, 6, 7, 8, 9} {
		cells = append(cells, theirs(n, 4, 1050))
	}
	listed := Result{Cells: cells}
	var allPast, over []Cell
	for n := range int64(10) {
		allPast = append(allPast, theirs(n, 4, 10_000, ofPast))
		over = append(over, theirs(n, 4, 10_000, free))
	}
	landed := read(theirs(3, 9, 1105, func(c *Cell) { c.Record.Write = "new" }))
	number := func(n int64) func(*Machine) { return func(m *Machine) { m.Pinned = n } }
	for _, test := range []struct {
		name    string
		m       Machine
		results []Result
		kinds   []EventKind
		next    OpKind
		why     Why
		node    int64
		claims  int // of unknown outcome
	}{
		{"it is missing", mine(), []Result{gone}, nil, Swap, OfFleet, FleetNode, 0},
		{"another process wrote it", mine(), []Result{gone, conflict}, nil, Read, OfFleet, FleetNode, 0},
		{"it is written", mine(), []Result{gone, done}, nil, List, First, 0, 0},
		{"it has some numbers", mine(), []Result{fleet(Fleet{Nodes: cell.Nodes{From: 6, To: 9}})}, nil, List, First, 6, 0},

		{"all are of the past", mine(), []Result{layout, {Cells: allPast}}, nil, None, Full, 0, 0},
		{"the time of the others is over", mine(), []Result{layout, {Cells: append(over[:9:9], allPast[9])}}, nil, None, EndOfTime, 0, 0},

		{"another process was faster", mine(), []Result{layout, listed, conflict}, nil, Swap, Claim, 4, 0},
		{"also for the other one", mine(), []Result{layout, listed, conflict, conflict}, nil, None, Full, 0, 0},
		{"it has landed", mine(), []Result{layout, listed, failed, landed}, []EventKind{Claimed}, Swap, Extend, 3, 0},

		{"it is damaged", mine(number(0)), []Result{layout, damaged}, []EventKind{Broken}, Read, First, 0, 0},
		{"it is claimed in any case", mine(number(5)), []Result{layout, read(theirs(5, 4, 1050))}, nil, Swap, Claim, 5, 0},

		{"another process has the lock", mine(locker), []Result{layout, listed, locked}, nil, Lock, Candidate, 4, 0},
		{"it is damaged", mine(locker), []Result{layout, listed, done, damaged}, nil, Lock, Candidate, 4, 0},
		{"it was written meanwhile", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 20_000))}, nil, Lock, Candidate, 4, 0},
		{"a claim has landed", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 900)), failed, landed}, nil, Lock, Adopt, 3, 1},
		{"it may still land", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 900)), failed, read(theirs(3, 5, 900))}, nil, Lock, Candidate, 3, 1},
		{"it can no longer land", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 900)), failed, read(theirs(3, 6, 900))}, nil, Lock, Candidate, 3, 0},
		{"another process locked it", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 900)), failed, landed, locked}, nil, Lock, Candidate, 3, 0},
		{"it is locked", mine(locker), []Result{layout, listed, done, read(theirs(3, 5, 900)), failed, landed, done}, []EventKind{Claimed}, Swap, Extend, 3, 0},
	} {
		m := test.m
		require.Equal(t, test.kinds, m.done(now, test.results...), test.name)
		op := m.Next(now)
		require.Equal(t, []any{test.next, test.why, test.node, test.claims}, []any{op.Kind, op.Why, op.Node, len(m.claims)}, test.name)
	}
}

// TestSought has the listed numbers from 256 on of 1,000, and what a claim tells of them.
func TestSought(t *testing.T) {
	next := at(func(in *Input) { in.Pick = 300 })
	for name, test := range map[string]struct {
		cells   []Cell
		results []Result
		others  int64
		most    uint64
		until   uint64
	}{
		"some that are held":                 {[]Cell{theirs(256, 4, 1060), theirs(257, 4, 1050), theirs(511, 4, 1070)}, nil, 3, 1070, 0},
		"one that is reserved, and damaged":  {[]Cell{theirs(257, 4, 1200, reserved), theirs(258, 4, 1050, broken)}, nil, 2, 0, 0},
		"all are reserved":                   {[]Cell{theirs(257, 4, 1300, reserved), theirs(258, 4, 1200, reserved)}, nil, 2, 0, 1200},
		"one is reserved, and one past":      {[]Cell{theirs(257, 4, 1300, reserved), theirs(258, 4, 1200, ofPast)}, nil, 2, 0, 0},
		"one without a tick left":            {[]Cell{theirs(257, 4, 10_000)}, nil, 0, 10_000, 0},
		"others than were asked for":         {[]Cell{theirs(255, 4, 1050), theirs(512, 4, 1050)}, nil, 0, 1050, 0},
		"another process was faster":         {[]Cell{theirs(300, 4, 900, free)}, []Result{{Status: Conflict}}, 1, 900, 0},
		"and had none before it":             {nil, []Result{{Status: Conflict}, {Status: Conflict}}, 2, 0, 0},
		"and another one holds what is left": {[]Cell{theirs(300, 4, 1050)}, []Result{{Status: Conflict}}, 2, 1050, 0},
	} {
		m := mine(thousand)
		op := m.Next(next)
		require.Equal(t, Op{Kind: List, Why: First, Node: 256, N: 256}, op)
		m.Done(next, op, Result{Cells: test.cells})
		if test.cells == nil {
			require.EqualValues(t, 300, m.Next(next).Node, "any of them")
		}
		m.done(next, test.results...)
		require.Equal(t, []any{test.others, test.until}, []any{m.Sought().Others, m.Sought().Until}, name)
		require.Equal(t, test.most, m.most, name)
	}

	m := mine(locker, thousand)
	op := m.Next(next)
	require.Equal(t, Op{Kind: List, Why: First, Node: 0, N: 256}, op, "a locker begins with the lowest")
	m.done(next, Result{}, Result{Status: Locked})
	require.True(t, m.Sought().Busy)
	m.done(next, Result{Status: Damaged})
	require.False(t, m.Sought().Busy)
	m.done(next, Result{}, Result{Status: Damaged})
	require.EqualValues(t, 3, m.Sought().Others)
	m.probe.taken(2, false)
	require.EqualValues(t, 3, m.Sought().Others, "each once")

	m = mine(thousand)
	var held []Cell
	for n := range int64(256) {
		held = append(held, theirs(256+n, 4, 1050))
	}
	m.done(next, Result{Cells: held})
	require.Equal(t, Op{Kind: List, Why: Candidate, Node: 512, N: 488}, m.Next(next), "none is free, so it reads on")
}

// TestManyClaims has as many claims of unknown outcome as are remembered: one of their numbers is tried again.
func TestManyClaims(t *testing.T) {
	m := mine()
	m.probe.stage, m.probe.search, m.probe.cells = searching, Search{Nodes: 10, Done: 10}, []Cell{theirs(3, 4, 900, free)}
	for len(m.probe.waiting) < maxClaims {
		require.EqualValues(t, 3, m.Next(now).Node)
		m.probe.waiting = append(m.probe.waiting, theirs(5, 4, 1050, still))
	}
	require.EqualValues(t, 5, m.Next(now).Node)
	require.Equal(t, []int{2, 3}, remember([]int{1, 2}, 3, 2))
}

// TestKeeps: the lock of a number is kept while it is held, or a claim is at it.
func TestKeeps(t *testing.T) {
	probing := mine(func(m *Machine) { m.probe.locked, m.probe.lock = true, 3 })
	for node, want := range map[int64][]bool{0: {false, false, false}, 3: {false, false, true}, 5: {false, true, false}} {
		for i, m := range []Machine{mine(), mine(holding), probing} {
			require.Equal(t, want[i], m.Keeps(node), "%d of %d", node, i)
			require.Equal(t, i == 1, m.Rests())
		}
	}
	m := mine()
	require.Equal(t, window.Range{}, m.Grant())
	holding(&m)
	require.Equal(t, window.Range{Node: 5, From: 950, To: 1050}, m.Grant())
	m.suspect, m.doubt = true, true
	require.Equal(t, window.Range{}, m.Grant())
	require.False(t, m.Rests())
}

// TestFar: two windows of the last holder, or of the operator, are not far ahead, and no fleet's floor is.
func TestFar(t *testing.T) {
	for limit, far := range map[uint64]bool{1300: false, 1301: true} {
		require.Equal(t, far, Far(cell.Node{Limit: limit, Window: 150}, 0, 1000, 100))
		require.Equal(t, far, Far(cell.Node{Limit: limit, Window: 100}, 0, 1000, 150))
		require.Equal(t, far, Far(cell.Node{Limit: limit}, 1300, 1000, 100))
	}
	require.EqualValues(t, 3, (&Fleet{Nodes: cell.Nodes{From: 6, To: 9}}).count())
	h := Handover{Floor: 5}
	for _, c := range []Cell{{Record: Final(cell.Node{Limit: 7}, 0, false, "new", "w")}, {Record: Final(cell.Node{Limit: 8}, 0, true, "new", "w")}, {Record: Final(cell.Node{Limit: 9, Past: cell.Given}, 0, false, "new", "w")}} {
		h.Add(c)
	}
	require.Equal(t, []uint64{7, 8, 9}, []uint64{h.Floor, h.Later[0].Record.Limit, h.Later[1].Record.Limit})
}

// TestGive: which numbers are given to the past, and why others are not.
func TestGive(t *testing.T) {
	for _, test := range []struct {
		was             Cell
		floor           uint64
		rewound, unused bool
		err             error
	}{
		{none(3), 0, false, false, nil}, {none(3), 1, true, true, nil},
		{theirs(3, 1, 0), 0, false, true, ErrWritten}, {Cell{Damaged: true}, 0, false, true, ErrWritten},
		{none(3), 1, false, false, ErrFloor}, {none(3), 0, true, false, ErrRewound},
	} {
		_, err := Give(test.was, Fleet{Floor: test.floor}, 99, test.rewound, test.unused, "w", "L")
		require.Equal(t, test.err, err, "%+v", test)
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
		"one up to the end":                {machine: mine(), cells: []Cell{theirs(3, 4, 9950, free)}, why: Claim, version: 4, from: 9950, limit: 10_000},
		"one after the store went back":    {machine: mine(func(m *Machine) { m.least = 1300 }), cells: []Cell{theirs(3, 4, 1200, free)}, why: Claim, version: 4, from: 1300, limit: 1400},
		"one that is past by a grace":      {machine: mine(), cells: []Cell{theirs(3, 4, 899)}, why: Claim, version: 4, from: 1000, limit: 1105},
		"none that is past by less":        {machine: mine(), cells: []Cell{theirs(3, 4, 900)}, why: Full},
		"one that was reserved until now":  {machine: mine(), cells: []Cell{theirs(3, 4, 1000, reserved)}, why: Claim, version: 4, from: 1000, limit: 1105},
		"a pinned one, whoever holds it":   {machine: mine(pinned), cells: []Cell{theirs(5, 4, 1050)}, why: Claim, version: 4, from: 1050, limit: 1150},
		"one below the fleet's floor":      {machine: mine(func(m *Machine) { m.probe.fleet.Floor = 1300 }), cells: []Cell{none(3)}, why: Claim, from: 1300, limit: 1400},
		"none that has left, or never was": {machine: mine(), cells: []Cell{theirs(3, 4, 900, left), none(10)}, why: Full},
		"all are at the end":               {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free), theirs(4, 4, 10_000)}, why: EndOfTime},
		"all are at the end, or damaged":   {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free), theirs(4, 4, 10_000, broken)}, why: Full},
		"all are of the past":              {machine: mine(func(m *Machine) { m.probe.past = 10 }), why: Full},
		"all are at the end, or held":      {machine: mine(), cells: []Cell{theirs(3, 4, 10_000, free)}, others: 1, why: Full},
		"the clock is past the end":        {machine: mine(func(m *Machine) { m.End = 1000 }), cells: []Cell{none(3)}, why: EndOfTime},
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
	near, far, other := theirs(5, 4, 1100, free), theirs(4, 4, 5000, free), theirs(6, 4, 1050)
	for name, test := range map[string]struct {
		machine Machine
		cells   []Cell
		nodes   []int64 // any of them
		rank    Rank
	}{
		"a locker's first number":       {mine(locker, func(m *Machine) { m.probe.fleet.First = 5 }), []Cell{none(4), none(7), none(6), none(0)}, []int64{6}, Ready},
		"which is free itself":          {mine(locker, func(m *Machine) { m.probe.fleet.First = 5 }), []Cell{none(6), none(5), none(4)}, []int64{5}, Ready},
		"a locker of a site":            {mine(locker, func(m *Machine) { m.probe.fleet = Fleet{Nodes: cell.Nodes{From: 5, To: 9}, First: 7} }), []Cell{none(5), none(6), none(8)}, []int64{8}, Ready},
		"and what follows the last one": {mine(locker, func(m *Machine) { m.probe.fleet.First = 8 }), []Cell{none(4), none(7), none(6), none(0)}, []int64{0}, Ready},
		"equal ones are drawn from":     {mine(), []Cell{far, guess, ready, fresh, other}, []int64{1, 2}, Ready},
		"then guesses":                  {mine(), []Cell{far, guess, near, other}, []int64{3}, Guess},
		"which are drawn from as well":  {mine(), []Cell{guess, theirs(7, 4, 100), theirs(8, 4, 100)}, []int64{3, 7, 8}, Guess},
		"then the nearest ahead":        {mine(), []Cell{far, near, other}, []int64{5}, Ahead},
		"of equal ones the lowest":      {mine(), []Cell{theirs(7, 4, 1100, free), near, far}, []int64{5}, Ahead},
		"a limit at the clock is ready": {mine(), []Cell{near, theirs(7, 4, 1000, free)}, []int64{7}, Ready},
		"a locker reuses cells":         {mine(locker), []Cell{none(0), other, ready}, []int64{1}, Ready},
		"a locker takes the lowest":     {mine(locker), []Cell{none(2), none(1)}, []int64{1}, Ready},
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
