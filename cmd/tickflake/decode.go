package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

const decodeHelp = `Take IDs apart: print the time, node, parts of the node and sequence of each.

The IDs are the arguments or, without any, the lines of standard input; blanks
around them and empty lines do not matter. An ID that cannot be decoded is
reported on standard error with its line number or position, the rest goes on,
and the exit code is 1.

An ID does not tell which layout it was made with. With another
layout the result is plausible and wrong, so name the layout.

With --format json each ID gives one object on a line of its own, with the fields
id (a string), time, node, parts (an object by name) and sequence.`

const decodeExamples = `  tickflake decode --layout twitter 1541815603606036480
  tickflake decode --layout twitter --input base58 4aaW4SzAyQK
  cut -d, -f1 orders.csv | tickflake decode --layout 41/10/12,epoch=2026-01-01
  tickflake decode --layout discord --format json < ids.txt | jq -r .time`

func newDecode(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "decode [ID...]",
		Short:   "Take IDs apart",
		Long:    decodeHelp,
		Example: decodeExamples,
	}
	layout := layoutFlag(cmd)
	format := command.FormatFlag(cmd)
	input := command.ChoiceFlag(cmd, "input", "read IDs in the `FORM`", formNames...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d := &decoder{Console: c, layout: *layout, parse: forms[*input].parse, json: *format == command.FormatJSON}
		if len(args) == 0 {
			err := c.Lines(cmd.Context(), func(number int, line []byte, tooLong error) error {
				if tooLong != nil {
					return d.report("line", number, fmt.Errorf("%w, so it is no ID", tooLong))
				} else if line = bytes.TrimSpace(line); len(line) == 0 {
					return nil
				}
				return d.one("line", number, string(line))
			})
			return cmp.Or(err, d.bad)
		}
		for i, id := range args {
			if err := d.one("argument", i+1, strings.TrimSpace(id)); err != nil {
				return err
			}
		}
		return d.bad
	}
	return cmd
}

// decoder decodes one ID after the other.
type decoder struct {
	*command.Console
	layout snowflake.Layout
	parse  func(string) (snowflake.ID, error)
	json   bool
	bad    error // [command.ErrReported] if an ID was reported as bad
}

// one decodes the ID of an argument or a line. It reports a bad ID; its own error is one of
// writing.
func (d *decoder) one(where string, number int, text string) error {
	id, err := d.parse(text)
	if err != nil {
		return d.report(where, number, err)
	}
	decoded, err := d.layout.Decode(id)
	if err != nil {
		return d.report(where, number, err)
	}
	line := []byte(decoded.String())
	if d.json {
		if line, err = decoded.MarshalJSON(); err != nil {
			return err
		}
	}
	// A bufio.Writer that failed once fails for good.
	_, err = d.Out.Write(append(line, '\n'))
	return err
}

// report writes an error about the ID of an argument or a line, after the IDs before it.
func (d *decoder) report(where string, number int, problem error) error {
	d.bad = d.Report(fmt.Errorf("%s %d: %w", where, number, problem))
	if d.bad == command.ErrReported {
		return nil
	}
	return d.bad
}

// form is a way to write an ID.
type form struct {
	format func(snowflake.ID) string
	parse  func(string) (snowflake.ID, error)
}

var forms = map[string]form{
	"dec":    {snowflake.ID.String, snowflake.Parse},
	"base32": {snowflake.ID.Base32, snowflake.ParseBase32},
	"base58": {snowflake.ID.Base58, snowflake.ParseBase58},
	"base62": {snowflake.ID.Base62, snowflake.ParseBase62},
}

// formNames are the keys of forms in the order of help texts, the default first.
var formNames = []string{"dec", "base32", "base58", "base62"}
