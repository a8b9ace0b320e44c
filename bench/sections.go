package main

import (
	"slices"

	"github.com/tickflake/tickflake/bench/indexes"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/scorecard"
	"github.com/tickflake/tickflake/bench/speed"
	"github.com/tickflake/tickflake/bench/spread"
	"github.com/tickflake/tickflake/bench/ways"
)

// sections are those of the report, in its order.
func sections() []measure.Section {
	return slices.Concat(speed.Sections(), scorecard.Sections(), spread.Sections(), ways.Sections(), indexes.Sections())
}
