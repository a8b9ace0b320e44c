package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// run measures, and writes the report.
func (p program) run(ctx context.Context, o options) error {
	chosen, err := p.chosen(o)
	if err != nil {
		return err
	}
	root, rootErr := repository()
	if o.readme {
		// Rather now than after three minutes.
		if err := o.readmeFits(root, rootErr); err != nil {
			return err
		}
	}
	folder, err := output(o.out, root, rootErr)
	if err != nil {
		return err
	}

	began := time.Now()
	machine := inspect()
	r := &runner{options: o, sections: chosen, progress: newProgress(p.err, o.quick, chosen), err: p.err}
	report := r.run(ctx)
	report.Began, report.Seconds = began, time.Since(began).Seconds()
	report.Machine = machine.end()

	files, err := write(report, folder)
	if err == nil && o.readme {
		if err = updateReadme(root, report, len(r.failed)); err == nil {
			files = append(files, readmeFiles(root)...)
		}
	}
	// Whatever could not be written, here is what it came to.
	if err := errors.Join(summarize(p.out, report, files), err); err != nil && !report.Interrupted {
		return err
	} else if err != nil {
		fmt.Fprintf(p.err, "bench: %v\n", err)
	}
	switch {
	case report.Interrupted:
		return context.Cause(ctx)
	case len(r.failed) > 0:
		return fmt.Errorf("%d of %d sections failed: %v", len(r.failed), len(chosen), r.failed)
	}
	return nil
}

// empty is a report to which sections are added.
func (o options) empty() *results.Report {
	return &results.Report{Schema: results.Schema, Command: o.line(), Quick: o.quick, Seed: uint64(o.seed)}
}
