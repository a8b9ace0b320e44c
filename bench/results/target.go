package results

// State is what became of a target.
type State string

// The states of a target.
const (
	Met    State = "met"
	Missed State = "missed"
	Open   State = "open" // it cannot be judged in this run
)

// State judges the target by the median of what was measured.
func (t Target) State() State {
	got, ok := t.Got.Summary()
	switch {
	case t.Open != "" || !ok:
		return Open
	case t.AtMost && got.Median <= t.Want, !t.AtMost && got.Median >= t.Want:
		return Met
	}
	return Missed
}

// Reason says why the target is open or was missed, if that is known.
func (t Target) Reason() string {
	switch {
	case t.State() == Missed:
		return t.Why
	case t.Open != "":
		return t.Open
	case t.State() == Open:
		return "it was not measured"
	}
	return ""
}

// Targets returns those of all sections, in order.
func (r *Report) Targets() []Target {
	var all []Target
	for _, s := range r.Sections {
		all = append(all, s.Targets...)
	}
	return all
}

// Count returns how many targets are in a state.
func (r *Report) Count(state State) int {
	n := 0
	for _, t := range r.Targets() {
		if t.State() == state {
			n++
		}
	}
	return n
}
