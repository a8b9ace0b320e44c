package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
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
  tickflake decode --layout twitter --from base58 4aaW4SzAyQK
  cut -d, -f1 orders.csv | tickflake decode --layout 41/10/12,epoch=2026-01-01
  tickflake decode --layout discord --format json < ids.txt | jq -r .time`

func newDecode(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "decode [ID...]",
		Short:             "Take IDs apart",
		Long:              decodeHelp,
		Example:           decodeExamples,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	layout := layoutFlag(cmd)
	format := formatFlag(cmd)
	from := command.ChoiceFlag(cmd, "from", "read IDs in the `FORM`", formNames...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d := &decoder{Console: c, layout: *layout, parse: forms[*from].parse, json: *format == command.FormatJSON}
		if len(args) == 0 {
			return d.lines(cmd.Context())
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

// lines decodes the lines of the input.
func (d *decoder) lines(ctx context.Context) error {
	in := bufio.NewReaderSize(d.Input(ctx), command.BufferSize)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			for err == bufio.ErrBufferFull {
				_, err = in.ReadSlice('\n')
			}
			if err := d.report("line", number, fmt.Errorf("longer than %d bytes, so it is no ID", command.BufferSize)); err != nil {
				return err
			}
		} else if text := bytes.TrimSpace(line); len(text) > 0 && (err == nil || err == io.EOF) {
			if err := d.one("line", number, string(text)); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return d.bad
		case isA[cli.Interruption](err):
			return fmt.Errorf("%w in line %d", err, number)
		case err != nil:
			return err
		}
	}
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
