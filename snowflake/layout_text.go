package snowflake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// quoteStart quotes a text of any length without flooding a log.
func quoteStart(s string) string {
	const enough = 200
	if len(s) <= enough {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q (%d bytes in all)", s[:enough], len(s))
}

// String returns the layout in the canonical form of a spec, with all fields in
// bit order and without the name:
//
//	time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z
//
// For every valid layout [ParseLayout] turns it back into the same layout,
// except that Name is empty and the epoch in UTC.
func (l Layout) String() string {
	var node strings.Builder
	for _, p := range l.Parts {
		fmt.Fprintf(&node, ",%s=%d", p.Name, p.Bits)
	}
	if len(l.Parts) == 0 {
		fmt.Fprintf(&node, ",node=%d", l.NodeBits)
	}
	fields := fmt.Sprintf("time=%d%s,sequence=%d", l.TimeBits, &node, l.SequenceBits)
	if l.Order == TimeSequenceNode {
		fields = fmt.Sprintf("time=%d,sequence=%d%s", l.TimeBits, l.SequenceBits, &node)
	}
	return fmt.Sprintf("%s,tick=%s,epoch=%s", fields, l.Tick, instantText(l.Epoch))
}

// MarshalText returns the form of [Layout.String], so that layouts can stand in
// JSON and other configuration files and serve as flags through
// [flag.TextVar]. The error wraps [ErrLayout] for an invalid layout, because its text
// could not be read back.
func (l Layout) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText sets the layout to what [ParseLayout] makes of the text; it
// takes every form that ParseLayout takes. On an error the layout is unchanged.
func (l *Layout) UnmarshalText(text []byte) error {
	parsed, err := ParseLayout(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// ParseLayout reads a layout from a spec, a comma-separated text in one of three
// forms:
//
//	twitter                      a preset, see Preset
//	twitter,epoch=2020-01-01     a preset with another epoch or tick; has no name
//	41/10/12                     widths of time, node and sequence
//	41/10/12,tick=10ms           the same with a tick, an epoch or both
//	time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z
//
// The last form lists the fields in bit order, high to low. A name other than
// time, sequence, tick and epoch is a part of the node; node=10 is a node
// without named parts, and no such item means no node bits. The time field comes
// first; the node, all of its parts together, comes before or after sequence.
//
// tick is a duration such as 100us, 1ms or 1s, by default 1ms. epoch is an
// instant in RFC 3339, a date (midnight UTC), or a count of milliseconds, not
// seconds, since 1970-01-01T00:00:00Z; by default it is that of
// [Default]. In the last form tick and epoch may stand anywhere. Spaces
// around items are ignored.
//
// The layout is validated. Every error wraps [ErrLayout], and names the item of the spec at fault, or what
// is wrong with the layout.
func ParseLayout(spec string) (Layout, error) {
	l, err := parseLayout(spec)
	if err == nil {
		err = l.Validate()
	}
	if text := quoteStart(spec); err != nil && !strings.Contains(err.Error(), text) { // an item says itself what it is
		err = fmt.Errorf("spec %s: %w", text, err)
	}
	if err != nil {
		return Layout{}, err
	}
	return l, nil
}

// maxSpecItems is the length of the longest valid spec: a part for every bit but
// that of the time field, and time, sequence, tick and epoch.
const maxSpecItems = maxBits - 1 + 4

// specItem is an item of a spec.
type specItem struct {
	text, key, value string // around the first "="
	field            bool   // there is one
}

// fail returns an error that names the item.
func (i specItem) fail(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrLayout, quoteStart(i.text), fmt.Sprintf(format, args...))
}

// parseLayout reads a layout that may not be valid.
func parseLayout(spec string) (l Layout, err error) {
	if n := strings.Count(spec, ",") + 1; n > maxSpecItems {
		return l, fmt.Errorf("%w: %d items; no layout has more than %d", ErrLayout, n, maxSpecItems)
	}
	var items, fields []specItem // fields: but tick and epoch
	for text := range strings.SplitSeq(spec, ",") {
		key, value, field := strings.Cut(text, "=")
		item := specItem{strings.TrimSpace(text), strings.TrimSpace(key), strings.TrimSpace(value), field}
		if slices.ContainsFunc(items, func(other specItem) bool { return other.key == item.key }) {
			return l, item.fail("%q occurs twice; give it once", item.key)
		}
		items = append(items, item)
		if item.key != "tick" && item.key != "epoch" {
			fields = append(fields, item)
		}
	}
	l.Tick, l.Epoch = time.Millisecond, Default().Epoch
	switch first := items[0]; {
	case first.field || first.key == "tick" || first.key == "epoch":
		err = l.parseFields(fields)
	case len(fields) > 1:
		err = fields[1].fail("only tick=... and epoch=... can follow a preset or widths; to name fields, list them all, like time=41,worker=10,sequence=12")
	case strings.Contains(first.text, "/"):
		err = l.parseWidths(first)
	default:
		err = l.parsePreset(first)
		if len(items) > 1 {
			l.Name = "" // its IDs are no longer those the name stands for
		}
	}
	for _, item := range items {
		if err == nil {
			err = l.parseSetting(item)
		}
	}
	return l, err
}

func (l *Layout) parsePreset(item specItem) error {
	preset, ok := Preset(item.text)
	if !ok {
		var names []string
		for _, l := range Presets() {
			names = append(names, l.Name)
		}
		return item.fail("not a preset (%s), nor widths like 41/10/12, nor fields like time=41,node=10,sequence=12", strings.Join(names, ", "))
	}
	*l = preset
	return nil
}

func (l *Layout) parseWidths(item specItem) (err error) {
	widths := strings.Split(item.text, "/")
	if len(widths) != 3 {
		return item.fail("%d widths; give three: time/node/sequence, like 41/10/12", len(widths))
	}
	for i, field := range []*int{&l.TimeBits, &l.NodeBits, &l.SequenceBits} {
		if *field, err = item.width(widths[i]); err != nil {
			return err
		}
	}
	return nil
}

// width reads the width of a field. It bounds it only so far that sums cannot
// overflow; Validate knows the real bounds and states them with the numbers.
func (i specItem) width(s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err != nil {
		return 0, i.fail("a width must be a whole number of bits from 0 to %d", maxBits-1)
	}
	return int(n), nil
}

// parseFields reads the fields of the full form, without tick and epoch.
func (l *Layout) parseFields(fields []specItem) error {
	const orders = "the orders are time, node, sequence and time, sequence, node"
	sequence := -1 // its place
	for i, item := range fields {
		if !item.field {
			return item.fail("not a field; give name=value, like node=10")
		}
		width, err := item.width(item.value)
		switch {
		case err != nil:
			return err
		case item.key == "time" && i > 0:
			return item.fail("the time field must come first, or IDs do not sort by time; %s", orders)
		case item.key == "time":
			l.TimeBits = width
		case item.key == "sequence":
			sequence, l.SequenceBits = i, width
		default:
			l.NodeBits += width
			l.Parts = append(l.Parts, Part{Name: item.key, Bits: width})
		}
	}
	const missing = "%w: %s=... is missing; give at least time=... and sequence=..., like time=41,node=10,sequence=12"
	switch {
	case len(fields) == 0 || fields[0].key != "time":
		return fmt.Errorf(missing, ErrLayout, "time")
	case sequence < 0:
		return fmt.Errorf(missing, ErrLayout, "sequence")
	case sequence > 1 && sequence < len(fields)-1:
		return fields[sequence+1].fail("the parts of the node must stand together, before or after sequence; %s", orders)
	case sequence < len(fields)-1:
		l.Order = TimeSequenceNode
	}
	for _, p := range l.Parts {
		switch {
		case p.Name == "node" && len(l.Parts) > 1:
			return fmt.Errorf("%w: node=... is a node without named parts and excludes them; name all parts or give node=... alone", ErrLayout)
		case p.Name == "node":
			l.Parts = nil
		}
	}
	return nil
}

// parseSetting reads the tick or the epoch if the item is one.
func (l *Layout) parseSetting(item specItem) (err error) {
	switch item.key {
	case "tick":
		if l.Tick, err = time.ParseDuration(item.value); err != nil {
			return item.fail("the tick must be a duration from 1ns to 1h, like 1ms, 10ms or 1s: %v", err)
		}
	case "epoch":
		if l.Epoch, err = ParseEpoch(item.value); err != nil {
			return item.fail("%v", err)
		}
	}
	return nil
}

// minEpochMillis is the least count above 0 that is believed to be milliseconds:
// 2,000,000,000, in January 1970. Counts below are years, or Unix seconds up to
// the year 2033.
const minEpochMillis = 2_000_000_000

// ParseEpoch reads an epoch in the forms that [ParseLayout] takes: an instant in RFC 3339,
// a date (midnight UTC), or a count of milliseconds since 1970-01-01T00:00:00Z. The
// result is in UTC. A count below 2,000,000,000 is refused: it is a year or a count of
// seconds. The bounds of an epoch are checked by [Layout.Validate], not here.
func ParseEpoch(s string) (time.Time, error) {
	var err error
	if s != "" && strings.Trim(s, "0123456789") == "" {
		var ms int64
		ms, err = strconv.ParseInt(s, 10, 64)
		t := time.UnixMilli(ms).UTC()
		if err == nil && (ms == 0 || ms >= minEpochMillis) {
			return t, nil
		}
		if err == nil {
			err = fmt.Errorf("%d milliseconds after 1970 is %s; give milliseconds, not seconds, or a date", ms, t.Format(time.RFC3339))
		}
	} else {
		for _, format := range []string{time.DateOnly, time.RFC3339} {
			var t time.Time
			if t, err = time.Parse(format, s); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("the epoch must be an instant like 2025-01-01T00:00:00Z, a date like 2025-01-01 (UTC), or milliseconds since 1970 like 1735689600000: %w", err)
}
