package generatortest

// The limits of scripts.
const (
	MaxIDs     = maxIDs
	MaxBatch   = maxBatch
	MaxRead    = maxRead
	MaxTime    = maxTime
	MaxCoarse  = maxCoarse
	MaxCallers = maxCallers
	MaxSteps   = maxSteps
)
