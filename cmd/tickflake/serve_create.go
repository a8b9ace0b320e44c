package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

// parseCreate reads a rule such as "orders-" or "invoices-=ordered,start=1000,max=9999".
func parseCreate(text string) (service.Create, error) {
	prefix, definition, _ := strings.Cut(text, "=")
	rule := service.Create{Prefix: prefix, Definition: sequence.Definition{Start: 1}}
	if prefix == "" {
		return rule, fmt.Errorf("want PREFIX or PREFIX=DEFINITION, got %q", text)
	}
	if err := sequence.CheckName(prefix); err != nil {
		return rule, err
	}
	if definition != "" {
		if err := parseDefinition(definition, &rule.Definition); err != nil {
			return rule, fmt.Errorf("sequences %s…: %w", prefix, err)
		}
	}
	return rule, rule.Definition.Check()
}

// parseDefinition reads a definition such as "ordered,start=1000,stride=2,offset=1". The
// names are those of the flags of "tickflake sequence create".
func parseDefinition(text string, d *sequence.Definition) error {
	given := make(map[string]bool)
	var by, offset int64
	for _, field := range strings.Split(text, ",") {
		name, value, assigned := strings.Cut(field, "=")
		if !assigned {
			name, value = "mode", field
		}
		if given[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		given[name] = true
		var err error
		switch name {
		case "mode":
			d.Mode, err = sequence.ParseMode(value)
		case "start":
			d.Start, err = wholeNumber(value)
		case "max":
			d.Max, err = wholeNumber(value)
		case "stride":
			by, err = wholeNumber(value)
		case "offset":
			offset, err = wholeNumber(value)
		case "step":
			var ok bool
			if d.MinStep, d.MaxStep, ok = numberRange(value, 1, sequence.MaxStep); !ok {
				err = fmt.Errorf("want a number from 1 to %d or a range, got %q", int64(sequence.MaxStep), value)
			}
		default:
			err = errors.New("want segmented or ordered, and start, max, stride, offset or step with a number")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	if given["stride"] != given["offset"] {
		return fmt.Errorf("%s: a stride needs its offset, and an offset its stride", text)
	}
	if given["stride"] {
		d.Stride = sequence.Every(by, offset)
	}
	if given["step"] && d.Mode == sequence.Ordered {
		return fmt.Errorf("%s: an ordered sequence has no steps: leave step out", text)
	}
	return nil
}
