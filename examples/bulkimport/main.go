// Command bulkimport copies CSV from its standard input to its standard output, with an ID for
// each row in a new first column.
//
// The IDs come in batches from NextN, which takes about a nanosecond per ID. No ID is issued
// twice, also if a run fails and the file is imported again.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// batch is the number of rows whose IDs are taken with one call: as many as one node issues
// per millisecond in the default layout, so that a call does not wait for long.
const batch = 4096

func main() {
	state := flag.String("state", "", "`directory` that keeps node numbers; it must outlast this program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *state); err != nil {
		log.Fatal("bulkimport: ", err)
	}
}

func run(ctx context.Context, state string) (err error) {
	gen, err := generator.Open(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close()) }()
	in, out := csv.NewReader(os.Stdin), csv.NewWriter(os.Stdout)
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("the header: %w", err)
	}
	if err := out.Write(append([]string{"id"}, header...)); err != nil {
		return err
	}
	began, issuing, total := time.Now(), time.Duration(0), 0
	rows, ids := make([][]string, 0, batch), make([]snowflake.ID, batch)
	for end := false; !end; {
		for rows = rows[:0]; len(rows) < batch; {
			row, err := in.Read()
			if end = errors.Is(err, io.EOF); end {
				break
			}
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		before := time.Now()
		if _, err := gen.NextNContext(ctx, ids[:len(rows)]); err != nil {
			return err
		}
		issuing += time.Since(before)
		for i, row := range rows {
			if err := out.Write(append([]string{ids[i].String()}, row...)); err != nil {
				return err
			}
		}
		total += len(rows)
	}
	out.Flush()
	took := time.Since(began)
	fmt.Fprintf(os.Stderr, "%d rows, %.0f per second; %.1f ns per ID\n", total, float64(total)/took.Seconds(), float64(issuing)/float64(max(total, 1)))
	return out.Error()
}
