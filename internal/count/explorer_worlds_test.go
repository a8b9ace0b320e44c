package count

import (
	"testing"

	"github.com/tickflake/tickflake/internal/sim/explore"
)

// In these worlds nothing breaks what must hold.
var (
	small = map[string]*world{
		"main":             {procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, lose: true, others: true},
		"three processes":  {procs: 3, numbers: 2, step: 2, batch: 1, kept: 1, lose: true, others: true},
		"four processes":   {procs: 4, numbers: 1, step: 1, batch: 1, lose: true},
		"steps of 3":       {procs: 2, numbers: 3, step: 3, batch: 1, lose: true},
		"maximum":          {procs: 2, numbers: 2, step: 2, batch: 2, kept: 1, lose: true, maximum: true},
		"no gap":           {procs: 1, numbers: 8, step: 3, batch: 1, kept: 1, clean: true},
		"plain":            {procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 1, lose: true, others: true, plain: true},
		"lanes":            {procs: 2, numbers: 2, step: 1, batch: 1, kept: 1, writes: 3, flying: 1, lose: true, plain: true, anew: true},
		"ordered":          {procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, calls: 2, ordered: true, lose: true},
		"back":             {procs: 2, numbers: 2, step: 1, batch: 1, writes: 4, flying: answered, back: true, lose: true},
		"back, steps of 2": {procs: 2, numbers: 2, step: 2, batch: 1, writes: 4, flying: answered, back: true, lose: true},
		"back, deleted":    {procs: 1, numbers: 2, step: 1, batch: 1, writes: 4, flying: answered, back: true, remove: true, lose: true},
		"stale":            {procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 1, stale: 1, lose: true},
		"restored":         {procs: 2, numbers: 2, step: 1, batch: 1, flying: 2, restore: true, lose: true},
		"deleted":          {procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, remove: true, lose: true},
	}
	large = map[string]*world{
		"large: main":             {procs: 3, numbers: 7, step: 2, batch: 1, kept: 1, lose: true, others: true},
		"large: three processes":  {procs: 3, numbers: 4, step: 2, batch: 2, kept: 1, lose: true, others: true},
		"large: four processes":   {procs: 4, numbers: 3, step: 2, batch: 1, lose: true, others: true},
		"large: steps of 3":       {procs: 2, numbers: 6, step: 3, batch: 1, kept: 1, lose: true, others: true},
		"large: maximum":          {procs: 2, numbers: 5, step: 2, batch: 2, kept: 1, lose: true, others: true, maximum: true},
		"large: no gap":           {procs: 1, numbers: 12, step: 4, batch: 1, kept: 1, clean: true},
		"large: plain":            {procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, writes: 4, flying: 2, lose: true, others: true, plain: true},
		"large: ordered":          {procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, calls: 2, ordered: true, lose: true},
		"large: back":             {procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, writes: 4, flying: 1, back: true, lose: true},
		"large: back, 3 numbers":  {procs: 2, numbers: 3, step: 2, batch: 1, writes: 4, flying: answered, back: true, lose: true},
		"large: back, steps of 2": {procs: 2, numbers: 4, step: 2, batch: 1, writes: 5, flying: answered, back: true, lose: true},
		"large: back, deleted":    {procs: 2, numbers: 3, step: 1, batch: 1, writes: 4, flying: answered, back: true, remove: true, lose: true},
		"large: stale":            {procs: 2, numbers: 4, step: 2, batch: 1, kept: 2, writes: 4, flying: 2, stale: 2, lose: true},
		"large: restored":         {procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, flying: 2, restore: true, lose: true},
		"large: deleted":          {procs: 2, numbers: 4, step: 2, batch: 2, kept: 1, remove: true, lose: true},
	}
)

func TestExplorer(t *testing.T) {
	explore.Worlds(t, small, large, "main", "three processes", "four processes", "steps of 3", "maximum", "ordered", "back, steps of 2", "stale", "deleted")
}
