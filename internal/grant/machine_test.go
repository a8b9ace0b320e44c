package grant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
)

// anyNumber is a machine with a window of 100 ticks.
var anyNumber = Machine{Config: Config{Window: 100, End: 10_000, Pinned: -1}}

func with(change func(*Machine)) Machine {
	m := anyNumber
	change(&m)
	return m
}

// theirs is a cell that another process wrote.
func theirs(node int64, limit uint64, change ...func(*Cell)) Cell {
	c := Cell{Node: node, Version: 4, Record: cell.Node{Holder: "other", Limit: limit, Window: 100}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func released(c *Cell) { c.Record.Holder = "" }
func still(c *Cell)    { c.Still = true }
func taken(c *Cell)    { c.Taken = true }
func broken(c *Cell)   { c.Damaged = true }
func reserved(c *Cell) { c.Record.Holder, c.Record.Reserved = "", true }

// TestChoose: at tick 1000, free numbers whose limit is past come before guesses, and these before
// those ahead.
func TestChoose(t *testing.T) {
	ready, fresh, guess := theirs(1, 900, released), Cell{Node: 2}, theirs(3, 899)
	near, far, other := theirs(4, 1001, released), theirs(5, 5000, released), theirs(6, 900)
	locker := with(func(m *Machine) { m.Locker = true })
	back := with(func(m *Machine) { m.least = 1001 })
	pinned := with(func(m *Machine) { m.Pinned = 0 })
	for name, test := range map[string]struct {
		machine Machine
		cells   []Cell
		nodes   []int64 // any of them
		rank    Rank
	}{
		"equal ones are drawn from":     {anyNumber, []Cell{far, guess, ready, fresh, other}, []int64{1, 2}, Ready},
		"not from others":               {anyNumber, []Cell{fresh, guess}, []int64{2}, Ready},
		"a limit at the clock is ready": {anyNumber, []Cell{near, theirs(7, 1000, released)}, []int64{7}, Ready},
		"and one whose holder is away":  {anyNumber, []Cell{guess, theirs(7, 1000, still)}, []int64{7}, Ready},
		"then guesses":                  {anyNumber, []Cell{far, guess, near, other}, []int64{3}, Guess},
		"which are drawn from as well":  {anyNumber, []Cell{guess, theirs(7, 100), theirs(8, 100)}, []int64{3, 7, 8}, Guess},
		"then the nearest ahead":        {anyNumber, []Cell{far, near, other}, []int64{4}, Ahead},
		"of equal ones the lowest":      {anyNumber, []Cell{theirs(7, 1001, released), near, far}, []int64{4}, Ahead},
		"and nothing else":              {anyNumber, []Cell{other, theirs(7, 900, taken), theirs(8, 900, broken)}, []int64{0}, NoRank},
		"a reserved one is free later":  {anyNumber, []Cell{theirs(7, 1001, reserved)}, []int64{0}, NoRank},
		"at its limit":                  {anyNumber, []Cell{theirs(7, 1000, reserved)}, []int64{7}, Ready},
		"one at the end of time is not": {anyNumber, []Cell{theirs(7, 10_000, released)}, []int64{0}, NoRank},
		"one before it is":              {anyNumber, []Cell{theirs(7, 9_999, released)}, []int64{7}, Ahead},
		"a locker reuses cells":         {locker, []Cell{{Node: 0}, other, ready}, []int64{1}, Ready},
		"a locker takes the lowest":     {locker, []Cell{{Node: 2}, {Node: 1}}, []int64{1}, Ready},
		"also of cells":                 {locker, []Cell{guess, ready, other}, []int64{1}, Ready},
		"after the store went back":     {back, []Cell{fresh}, []int64{2}, Ahead},
		"an existing one before others": {back, []Cell{{Node: 0}, theirs(7, 0, released)}, []int64{7}, Ahead},
		"a pinned number is the only":   {pinned, []Cell{theirs(0, 900)}, []int64{0}, Ready},
		"unless it is reserved":         {pinned, []Cell{theirs(0, 1001, reserved)}, []int64{0}, NoRank},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[int64]bool{}
			for pick := range uint64(9) {
				best, rank := test.machine.choose(Input{Now: 1000, Pick: pick}, test.cells)
				require.Equal(t, test.rank, rank)
				require.Contains(t, test.nodes, best.Node)
				seen[best.Node] = true
			}
			require.Len(t, seen, len(test.nodes))
		})
	}
}

func TestTimeIsOver(t *testing.T) {
	over := theirs(1, 10_000)
	for _, test := range []struct {
		cells []Cell
		want  bool
	}{
		{nil, true},
		{[]Cell{over, over}, true},
		{[]Cell{over, theirs(2, 9_999)}, false},
		{[]Cell{over, theirs(2, 10_000, taken)}, false},
		{[]Cell{over, theirs(2, 10_000, broken)}, false},
	} {
		require.Equal(t, test.want, anyNumber.timeIsOver(test.cells), "%+v", test.cells)
	}
}
