package stores

// OptionError reports an option or argument that a function of this module refuses: one out of
// range, nil, or in contradiction to another. A program that takes its options from flags or a
// file decides by Option which flag to name. It is of the kind [Refused].
type OptionError struct {
	Option string // the name of the option or argument, such as "WithWindow", "name" or "definition"
	Err    error  // why its value is refused, with the numbers
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns why the value is refused.
func (e *OptionError) Unwrap() error { return e.Err }

// Is reports whether target is [Refused].
func (e *OptionError) Is(target error) bool { return target == Refused }
