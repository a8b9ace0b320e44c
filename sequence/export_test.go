package sequence

// MaxOpenPeriods is for tests.
const MaxOpenPeriods = maxOpenPeriods
