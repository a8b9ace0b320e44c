package measure

import (
	"context"
	"fmt"
	"time"
)

// Rounds gives each of names its turn once per round, in an order that is drawn anew
// for every round, and returns how many rounds were completed. It ends with the round
// after which run.Budget, counted from began, would not suffice for another one like
// those before, but not before there were least rounds; or when ctx ends, after the
// turn that is under way.
func (run *Run) Rounds(ctx context.Context, began time.Time, least int, names []string, turn func(i int)) int {
	first := run.time()
	told := began
	for round := 0; ; round++ {
		now := run.time()
		if each := now.Sub(first) / time.Duration(max(round, 1)); round >= least && now.Sub(began)+each > run.Budget {
			return round
		}
		for _, i := range run.Rand.Perm(len(names)) {
			if ctx.Err() != nil {
				return round
			}
			if now = run.time(); now.Sub(told) >= tellEvery {
				told = now
				run.tell(now.Sub(began), fmt.Sprintf("round %d: %s", round+1, names[i]))
			}
			turn(i)
		}
	}
}

// tellEvery is how often progress is told, so that telling it does not disturb.
const tellEvery = 100 * time.Millisecond

// tell says that so much of the budget is used up.
func (run *Run) tell(used time.Duration, what string) {
	if run.Progress != nil {
		run.Progress(int(min(used, run.Budget).Milliseconds()), int(run.Budget.Milliseconds()), what)
	}
}

// time is the time that budgets are counted in.
func (run *Run) time() time.Time {
	if run.now != nil {
		return run.now()
	}
	return time.Now()
}
