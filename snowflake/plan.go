package snowflake

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// planTicks are the ticks that [Plan] tries, in order of preference: 1ms, which most
// generators have, then the nearest to it. Of two equally near ones the longer comes
// first: it absorbs larger bursts and suffers less from a clock that advances in steps.
// A finer tick than these gains nothing, since the clocks of several machines do not
// agree that closely. With a longer one a call that finds its tick used up waits too
// long.
var planTicks = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Microsecond, 100 * time.Millisecond, time.Second,
}

// The bounds of a Demand; any value above is a mistake.
const (
	maxPlanNodes = int64(1) << 62
	maxPlanRate  = 1e15
	maxPlanYears = 7000 // ends before the year 10000 whatever the epoch
)

// Demand is what a layout must have room for.
type Demand struct {
	// Nodes is the number of generators that issue IDs at once, 1 to 2^62.
	Nodes int64
	// RatePerNode is the peak number of IDs per second of one node, above 0 and
	// up to 1e15. A node that briefly needs more than its tick holds waits for
	// the next tick or borrows from it: to let bursts pass without a wait, give their
	// rate.
	RatePerNode float64
	// Years is how long the layout must last from its epoch, not from now, in
	// years of 365.25 days, above 0 and up to 7000. For an epoch in the past add its
	// age: to last 20 years from 2027, an epoch of 2025 needs 22.
	Years float64
	// Epoch is the instant of tick 0; the zero value stands for the epoch of
	// [Default].
	Epoch time.Time
	// Bits is the number of bits that an ID may take, 1 to 63; 0 stands for 63.
	// Take 53 for IDs that survive as a JavaScript number.
	Bits int
}

// PlanError reports a [Demand] that no layout within its number of bits meets. A caller
// decides by its fields which part of the demand to reduce, and to what: the demand with
// one of them put in its place fits.
type PlanError struct {
	// MaxNodes, MaxRatePerNode and MaxYears are the largest values that fit, each
	// with the rest of the demand unchanged; 0 if no value does.
	MaxNodes       int64
	MaxRatePerNode float64
	MaxYears       float64
	// Bits is the least number of bits that meets the whole demand. It is larger than
	// Demand.Bits, and may be larger than 63.
	Bits int

	demand                           Demand        // with its defaults filled in
	tick                             time.Duration // of those tried, the one that needs the fewest bits
	timeBits, nodeBits, sequenceBits int           // what that tick needs
}

// Error says how many bits are needed and missing, and which reduction fits.
func (e *PlanError) Error() string {
	d := e.demand
	var ways []string
	if e.MaxNodes > 0 {
		ways = append(ways, fmt.Sprintf("at most %d nodes (%s fewer)", e.MaxNodes, factorText(float64(d.Nodes)/float64(e.MaxNodes))))
	}
	if e.MaxRatePerNode > 0 {
		ways = append(ways, fmt.Sprintf("at most %s IDs/s per node (%s fewer)", plainNumber(e.MaxRatePerNode), factorText(d.RatePerNode/e.MaxRatePerNode)))
	}
	if e.MaxYears > 0 {
		ways = append(ways, fmt.Sprintf("at most %s years (%s fewer)", floorYears(e.MaxYears), factorText(d.Years/e.MaxYears)))
	}
	if e.Bits <= maxBits {
		ways = append(ways, fmt.Sprintf("a budget of %d bits", e.Bits))
	}
	advice := "no reduction of one of them alone fits; reduce several"
	if len(ways) > 0 {
		advice = "one of these fits: " + strings.Join(ways, ", or ")
	}
	return fmt.Sprintf("plan: %d nodes, %s IDs/s per node and %s years need %d bits, %d more than %d (%d time + %d node + %d sequence, with the best tick, %s); %s",
		d.Nodes, plainNumber(d.RatePerNode), plainNumber(d.Years), e.Bits, e.Bits-d.Bits, d.Bits, e.timeBits, e.nodeBits, e.sequenceBits, e.tick, advice)
}

// planSequenceBits is the width up to which a sequence gets spare bits.
const planSequenceBits = 12

// Plan returns a layout, without a name, in the order TimeNodeSequence and with
// unnamed node bits, that meets the demand.
//
// It takes a tick of 1ms if that fits, else the first of 10ms, 100µs, 100ms and 1s
// that does. Spare bits go to the sequence first, until a tick
// holds 4096 IDs, because a rate is an average and IDs come in bursts; then to
// the time field, up to 62 bits, where a high bit that stays 0 costs nothing. The
// node field gets what the demand needs.
//
// The error wraps [ErrDemand] for a demand with a value that is zero, negative, not a
// number or absurdly large, and is a [*PlanError] for a demand that does not fit.
func Plan(d Demand) (Layout, error) {
	if d.Epoch.IsZero() {
		d.Epoch = Default().Epoch
	}
	if d.Bits == 0 {
		d.Bits = maxBits
	}
	if err := d.validate(); err != nil {
		return Layout{}, err
	}
	nodeBits := bits.Len64(uint64(d.Nodes - 1))
	failed := &PlanError{demand: d, nodeBits: nodeBits, Bits: math.MaxInt}
	for _, tick := range planTicks {
		timeBits, sequenceBits := d.timeBits(tick), d.sequenceBits(tick)
		if need := timeBits + nodeBits + sequenceBits; need < failed.Bits {
			failed.tick, failed.timeBits, failed.sequenceBits, failed.Bits = tick, timeBits, sequenceBits, need
		}
		if timeBits+nodeBits+sequenceBits <= d.Bits {
			sequenceBits = max(sequenceBits, min(planSequenceBits, d.Bits-timeBits-nodeBits))
			return Layout{
				Epoch: d.Epoch, Tick: tick,
				TimeBits: min(d.Bits-nodeBits-sequenceBits, maxBits-1),
				NodeBits: nodeBits, SequenceBits: sequenceBits,
			}, nil
		}
		if spare := d.Bits - timeBits - sequenceBits; spare >= 0 {
			failed.MaxNodes = max(failed.MaxNodes, fieldMax(spare)+1)
		}
		if spare := d.Bits - timeBits - nodeBits; spare >= 0 {
			failed.MaxRatePerNode = max(failed.MaxRatePerNode, idsPerSecond(spare, tick))
		}
		if spare := d.Bits - nodeBits - sequenceBits; spare >= 1 {
			failed.MaxYears = max(failed.MaxYears, fieldYears(spare, tick))
		}
	}
	return Layout{}, failed
}

// timeBits returns the least width of a time field that lasts long enough.
func (d Demand) timeBits(tick time.Duration) int {
	width := 1
	for fieldYears(width, tick) < d.Years {
		width++
	}
	return width
}

// sequenceBits returns the least width of a sequence field that keeps up.
func (d Demand) sequenceBits(tick time.Duration) int {
	width := 0
	for idsPerSecond(width, tick) < d.RatePerNode {
		width++
	}
	return width
}

// validate checks a demand whose defaults are filled in.
func (d Demand) validate() error {
	ps := Layout{Epoch: d.Epoch}.checkEpoch(nil)
	check := func(ok bool, what, got, limit string) {
		if !ok {
			ps = append(ps, fmt.Sprintf("%s of %s makes no sense; give %s", what, got, limit))
		}
	}
	check(d.Nodes >= 1 && d.Nodes <= maxPlanNodes, "a number of nodes", strconv.FormatInt(d.Nodes, 10),
		fmt.Sprintf("1 to %d", maxPlanNodes))
	// Comparisons with NaN are false, so NaN fails these too.
	check(d.RatePerNode > 0 && d.RatePerNode <= maxPlanRate, "a rate per node", plainNumber(d.RatePerNode),
		"a number of IDs per second above 0 and up to 1e15")
	check(d.Years > 0 && d.Years <= maxPlanYears, "a lifetime in years", plainNumber(d.Years),
		fmt.Sprintf("a number of years above 0 and up to %d", maxPlanYears))
	check(d.Bits >= 1 && d.Bits <= maxBits, "a budget in bits", strconv.Itoa(d.Bits),
		fmt.Sprintf("1 to %d, or 0 for %d", maxBits, maxBits))
	if len(ps) > 0 {
		return problemsError(ErrDemand, "", ps)
	}
	return nil
}

func plainNumber(f float64) string {
	if math.Abs(f) > maxPlanRate {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// factorText rounds up, so that a demand divided by it fits.
func factorText(f float64) string {
	return plainNumber(math.Ceil(f*100)/100) + "×"
}

// floorYears keeps four digits and rounds down, so that what it says fits.
func floorYears(y float64) string {
	scale := math.Pow10(3 - int(math.Floor(math.Log10(y))))
	return plainNumber(math.Floor(y*scale) / scale)
}
