package grant

import (
	"testing"

	"github.com/tickflake/tickflake/internal/sim/explore"
)

// In these worlds nothing breaks what must hold.
var (
	small = map[string]*world{
		"one cell":         {procs: 2, cells: 1, ticks: 3, window: 1, net: 1},
		"three processes":  {procs: 3, cells: 1, ticks: 2, window: 1, net: 1},
		"window of two":    {procs: 2, cells: 1, ticks: 3, window: 2, net: 1},
		"two cells":        {procs: 2, cells: 2, ticks: 2, window: 1},
		"back":             {procs: 2, cells: 1, ticks: 2, window: 1, back: true, kept: 1},
		"stale":            {procs: 2, cells: 1, ticks: 2, window: 1, stale: 1, kept: 1},
		"told":             {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, copied: true},
		"untold":           {procs: 2, cells: 1, ticks: 2, window: 1, untold: true},
		"locker":           {procs: 2, cells: 2, ticks: 2, window: 1, locker: true},
		"pinned":           {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, pinned: true},
		"damaged":          {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, damaged: true},
		"stale, damaged":   {procs: 1, cells: 1, ticks: 2, window: 1, stale: 1, kept: 1, damaged: true},
		"reserved":         {procs: 2, cells: 1, ticks: 3, window: 1, reserves: true},
		"reserved, pinned": {procs: 2, cells: 1, ticks: 3, window: 1, reserves: true, pinned: true},
		"apart":            {procs: 2, cells: 1, ticks: 3, window: 1, net: 1, apart: true},
		"moves":            {procs: 2, cells: 2, ticks: 2, window: 1, net: 1, moves: true},
		"moves again":      {procs: 2, cells: 2, ticks: 3, window: 1, moves: true, floor: 2},
		"past":             {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, past: true},
		"past, pinned":     {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, past: true, pinned: true},
		"past, back":       {procs: 1, cells: 1, ticks: 2, window: 1, past: true, back: true, kept: 1},
		"past, word":       {procs: 1, cells: 1, ticks: 2, window: 1, past: true, back: true, kept: 1, word: true},
		"past, moves":      {procs: 2, cells: 2, ticks: 2, window: 1, past: true, moves: true},
		"past, floor":      {procs: 1, cells: 2, ticks: 3, window: 1, past: true, moves: true, floor: 2},
	}
	large = map[string]*world{
		"back, two names":              {procs: 2, cells: 1, ticks: 2, window: 1, back: true, kept: 2},
		"stale twice":                  {procs: 2, cells: 1, ticks: 2, window: 1, stale: 2, kept: 2},
		"back, writes land twice":      {procs: 2, cells: 1, ticks: 2, window: 1, back: true, twice: true, kept: 2},
		"back, late writes":            {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, back: true, kept: 2},
		"stale, late writes":           {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, stale: 2, kept: 2},
		"untold, late writes":          {procs: 2, cells: 1, ticks: 2, window: 1, net: 1, untold: true},
		"damaged, two cells":           {procs: 2, cells: 2, ticks: 2, window: 1, damaged: true},
		"back three ticks":             {procs: 2, cells: 1, ticks: 3, window: 1, back: true, kept: 2},
		"stale three ticks":            {procs: 2, cells: 1, ticks: 3, window: 1, stale: 2, kept: 3},
		"three processes, two cells":   {procs: 3, cells: 2, ticks: 2, window: 1},
		"three processes, late writes": {procs: 3, cells: 1, ticks: 3, window: 1, net: 1},
		"late writes":                  {procs: 2, cells: 1, ticks: 3, window: 1, net: 2},
		"late writes, two cells":       {procs: 2, cells: 2, ticks: 2, window: 1, net: 1},
		"moves, three ticks":           {procs: 2, cells: 2, ticks: 3, window: 1, moves: true},
		"past, word, two processes":    {procs: 2, cells: 1, ticks: 2, window: 1, past: true, back: true, kept: 1, word: true},
		"late writes, window of two":   {procs: 2, cells: 1, ticks: 4, window: 2, net: 2},
	}
)

func TestExplorer(t *testing.T) { explore.Worlds(t, small, large) }
