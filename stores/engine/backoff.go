package engine

import "github.com/tickflake/tickflake/internal/pause"

// Backoff has the pauses between the tries of an operation. They double from First up to Last, and
// up to half of each is left out at random, so that processes that began at once do not go on at
// once. It is for one goroutine.
type Backoff = pause.Backoff
