// Command bulkimport gives an ID to each row of a CSV file, in a new first column.
//
// The IDs come in batches from NextN, which takes about a nanosecond per ID. The output
// is written to a file whose name ends in ".part", and renamed when it is complete. A run
// that fails or is interrupted removes that file; run it again, and no ID is issued twice.
// A run that is killed (kill -9) leaves the file, and the next run reports it.
//
// A file that exists is never overwritten.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
)

func main() {
	in := flag.String("in", "", "CSV `file` to read, with a header; /dev/stdin for a pipe")
	out := flag.String("out", "", "CSV `file` to write, which must not exist")
	state := flag.String("state", "", "`directory` that keeps node numbers; it must outlast this program")
	flag.Parse()
	if *in == "" || *out == "" || *state == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bulkimport: want --in, --out and --state, and no arguments but flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *in, *out, *state); err != nil {
		slog.Error("bulkimport failed", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in, out, state string) (err error) {
	if err := absent(out); err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	gen, err := generator.Open(opening, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close()) }()

	began := time.Now()
	did, err := convert(ctx, gen, in, out)
	if err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("%d rows in %v: %.0f rows/s; of it %v for IDs: %.1f ns per ID\n", did.rows, took.Round(time.Millisecond),
		float64(did.rows)/took.Seconds(), did.issuing.Round(time.Microsecond), float64(did.issuing.Nanoseconds())/float64(max(did.rows, 1)))
	return nil
}

// convert writes the file out from the file in, all of it or nothing.
func convert(ctx context.Context, gen *generator.Generator, in, out string) (did work, err error) {
	from, err := os.Open(in)
	if err != nil {
		return did, err
	}
	defer from.Close() //nolint:errcheck // it was only read
	// Closing the file ends a read that waits for a pipe or a terminal.
	stop := context.AfterFunc(ctx, func() { _ = from.Close() })
	defer stop()

	part := out + ".part"
	to, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return did, fmt.Errorf("%s exists: another import writes it, or was killed; remove it if none does", part)
	}
	if err != nil {
		return did, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	did, err = addIDs(ctx, gen, from, to)
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted after %d rows: %w", did.rows, context.Cause(ctx))
	}
	if err == nil {
		err = to.Sync() // so that a power failure leaves no incomplete file under the final name
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return did, err
	}
	if err := absent(out); err != nil { // another process may have made it meanwhile
		return did, err
	}
	return did, os.Rename(part, out)
}

// absent returns an error if path exists. A rename would replace it, even if it is a
// device or a link.
func absent(path string) error {
	switch info, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists (%s), and would be replaced: choose another name, or remove it", path, info.Mode())
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}
