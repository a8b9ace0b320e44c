package snowflake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// specError returns the error for a spec that is no layout. The item is the one at fault,
// or the zero item if the spec as a whole is.
func specError(spec string, item specItem, reason string) error {
	where := quoteStart(spec)
	if item.text != "" {
		where += fmt.Sprintf(", byte %d, %s", item.offset, quoteStart(item.text))
	}
	return fmt.Errorf("%w: spec %s: %s", ErrLayout, where, reason)
}

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
// The layout is validated. Every error wraps [ErrLayout], and names the item of the spec
// and its position in bytes, or what is wrong with the layout.
func ParseLayout(spec string) (Layout, error) {
	if items := strings.Count(spec, ",") + 1; items > maxSpecItems {
		return Layout{}, specError(spec, specItem{}, fmt.Sprintf("%d items; no layout has more than %d", items, maxSpecItems))
	}
	p := specParser{spec: spec}
	offset := 0
	for text := range strings.SplitSeq(spec, ",") {
		item := specItem{text: strings.TrimSpace(text), offset: offset}
		item.offset += strings.Index(text, item.text)
		key, value, _ := strings.Cut(item.text, "=")
		item.key, item.value = strings.TrimSpace(key), strings.TrimSpace(value)
		p.items = append(p.items, item)
		offset += len(text) + 1
	}
	p.layout.Tick, p.layout.Epoch = time.Millisecond, Default().Epoch

	var err error
	switch first := p.items[0].text; {
	case strings.Contains(first, "="):
		err = p.parseFields()
	case strings.Contains(first, "/"):
		err = p.parseWidths()
	default:
		err = p.parsePreset()
	}
	if err != nil {
		return Layout{}, err
	}
	if err := p.layout.Validate(); err != nil {
		return Layout{}, fmt.Errorf("spec %s: %w", quoteStart(spec), err)
	}
	return p.layout, nil
}

// maxSpecItems is the length of the longest valid spec: a part for every bit but
// that of the time field, and time, sequence, tick and epoch.
const maxSpecItems = maxBits - 1 + 4

type specItem struct {
	text       string
	offset     int
	key, value string // around the first "="
}

type specParser struct {
	spec   string
	items  []specItem
	layout Layout
}

func (p *specParser) fail(item specItem, format string, args ...any) error {
	return specError(p.spec, item, fmt.Sprintf(format, args...))
}

func (p *specParser) parsePreset() error {
	preset, ok := Preset(p.items[0].text)
	if !ok {
		names := make([]string, 0, len(Presets()))
		for _, l := range Presets() {
			names = append(names, l.Name)
		}
		return p.fail(p.items[0], "not a preset (%s), nor widths like 41/10/12, nor fields like time=41,node=10,sequence=12",
			strings.Join(names, ", "))
	}
	p.layout = preset
	if len(p.items) > 1 {
		p.layout.Name = "" // its IDs are no longer those the name stands for
	}
	return p.parseSettings(p.items[1:])
}

func (p *specParser) parseWidths() error {
	widths := strings.Split(p.items[0].text, "/")
	if len(widths) != 3 {
		return p.fail(p.items[0], "%d widths; give three: time/node/sequence, like 41/10/12", len(widths))
	}
	for i, field := range []*int{&p.layout.TimeBits, &p.layout.NodeBits, &p.layout.SequenceBits} {
		var err error
		if *field, err = p.width(p.items[0], widths[i]); err != nil {
			return err
		}
	}
	return p.parseSettings(p.items[1:])
}

// parseSettings reads what may follow a short form.
func (p *specParser) parseSettings(items []specItem) error {
	for i, item := range items {
		if err := p.checkRepeated(item, items[:i]); err != nil {
			return err
		}
		known, err := p.parseSetting(item)
		if err != nil {
			return err
		}
		if !known {
			return p.fail(item, "only tick=... and epoch=... can follow a preset or widths; to name fields, list them all, like time=41,worker=10,sequence=12")
		}
	}
	return nil
}

// parseSetting reads a tick or an epoch, and reports whether the item is one.
func (p *specParser) parseSetting(item specItem) (bool, error) {
	var err error
	switch item.key {
	case "tick":
		if p.layout.Tick, err = time.ParseDuration(item.value); err != nil {
			return true, p.fail(item, "the tick must be a duration from 1ns to 1h, like 1ms, 10ms or 1s: %v", err)
		}
		return true, nil
	case "epoch":
		if p.layout.Epoch, err = ParseEpoch(item.value); err != nil {
			return true, p.fail(item, "%v", err)
		}
		return true, nil
	}
	return false, nil
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

// parseFields reads the full form.
func (p *specParser) parseFields() error {
	l := &p.layout
	var timeSeen, sequenceSeen, nodeSeen, nodeClosed bool
	for i, item := range p.items {
		if err := p.checkRepeated(item, p.items[:i]); err != nil {
			return err
		}
		if setting, err := p.parseSetting(item); err != nil {
			return err
		} else if setting {
			continue
		}
		if !strings.Contains(item.text, "=") {
			return p.fail(item, "not a field; give name=value, like node=10")
		}
		width, err := p.width(item, item.value)
		if err != nil {
			return err
		}
		switch item.key {
		case "time":
			if sequenceSeen || nodeSeen {
				return p.fail(item, "the time field must come first, or IDs do not sort by time; the orders are time, node, sequence and time, sequence, node")
			}
			timeSeen, l.TimeBits = true, width
		case "sequence":
			sequenceSeen, l.SequenceBits = true, width
			nodeClosed = nodeSeen
		default:
			if nodeClosed {
				return p.fail(item, "the parts of the node must stand together, before or after sequence; the orders are time, node, sequence and time, sequence, node")
			}
			if item.key != "node" {
				if msg := checkPartName(item.key); msg != "" {
					return p.fail(item, "%s", msg)
				}
				l.Parts = append(l.Parts, Part{Name: item.key, Bits: width})
			}
			// A second node item is fine only if it and the first are parts.
			if nodeSeen && (item.key == "node" || len(l.Parts) == 1) {
				return p.fail(item, "node=... is a node without named parts and excludes them; name all parts or give node=... alone")
			}
			if sequenceSeen {
				l.Order = TimeSequenceNode
			}
			nodeSeen = true
			l.NodeBits += width
		}
	}
	if !timeSeen || !sequenceSeen {
		missing := "time"
		if timeSeen {
			missing = "sequence"
		}
		return specError(p.spec, specItem{}, missing+"=... is missing; give at least time=... and sequence=..., like time=41,node=10,sequence=12")
	}
	return nil
}

func (p *specParser) checkRepeated(item specItem, before []specItem) error {
	if slices.ContainsFunc(before, func(b specItem) bool { return b.key == item.key }) {
		return p.fail(item, "%q occurs twice; give it once", item.key)
	}
	return nil
}

// width reads the width of a field. It bounds it only so far that sums cannot
// overflow; Validate knows the real bounds and states them with the numbers.
func (p *specParser) width(item specItem, s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err != nil {
		return 0, p.fail(item, "a width must be a whole number of bits from 0 to %d", maxBits-1)
	}
	return int(n), nil
}
