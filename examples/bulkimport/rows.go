package main

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// batch is the number of rows whose IDs are taken with one call: as many as one node issues
// per millisecond in the default layout, so that a call does not wait for long.
const batch = 4096

// work counts what an import did.
type work struct {
	rows    int
	issuing time.Duration // spent on IDs
}

// addIDs copies CSV rows and puts an ID in front of each. The IDs ascend with the rows.
func addIDs(ctx context.Context, gen *generator.Generator, from io.Reader, to io.Writer) (did work, err error) {
	in, out := csv.NewReader(from), csv.NewWriter(to)
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return did, errors.New("the file is empty: want a header at least")
	}
	if err != nil {
		return did, err
	}
	if err := out.Write(append([]string{"id"}, header...)); err != nil {
		return did, err
	}
	ids := make([]snowflake.ID, batch)
	for {
		rows, err := read(in, batch)
		if err != nil {
			return did, err
		}
		if len(rows) == 0 {
			out.Flush()
			return did, out.Error()
		}
		began := time.Now()
		if _, err := gen.NextNContext(ctx, ids[:len(rows)]); err != nil {
			return did, err
		}
		did.issuing += time.Since(began)
		for i, row := range rows {
			if err := out.Write(append([]string{ids[i].String()}, row...)); err != nil {
				return did, err
			}
		}
		did.rows += len(rows)
	}
}

// read reads up to n rows, and none at the end.
func read(in *csv.Reader, n int) (rows [][]string, err error) {
	for len(rows) < n {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
