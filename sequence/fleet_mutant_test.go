package sequence_test

import (
	"context"

	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/segment"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

type mutant struct {
	name   string
	seeds  int
	faults []fleettest.FaultKind
	caught string
	mode   *sequence.Mode
	recur  bool

	store  func(*process, stores.Store) stores.Store
	decide func(*opened, segment.State, segment.Cell) segment.Decision
	close  func(*opened, *thread, context.Context) error
}
