package generatortest

// The limits of scripts.
const (
	MaxIDs   = maxIDs
	MaxRead  = maxRead
	MaxTime  = maxTime
	MaxSteps = maxSteps
)
