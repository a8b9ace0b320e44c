// Command bulkimport gives an ID to each row of a CSV file, in a column in front of the
// others.
//
// The IDs come in batches, from NextN, which costs about a nanosecond per ID. The
// output appears when all of it is written; a run that is interrupted or fails leaves
// none, and can simply be run again: the IDs that it had taken are never issued again.
// Until then it is beside the output, with ".part" at the end of its name. One that is
// killed (kill -9) leaves that file, and the next run says so.
//
// Nothing is ever overwritten: the output must not exist.
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
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
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
	store, err := directory.Open(state)
	if err != nil {
		return err
	}
	claiming, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	keeper, err := lease.Claim(claiming, store)
	if err != nil {
		return err
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return errors.Join(err, keeper.Close())
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

// convert makes one file of the other, all of it or nothing.
func convert(ctx context.Context, gen *generator.Generator, in, out string) (did work, err error) {
	from, err := os.Open(in)
	if err != nil {
		return did, err
	}
	defer from.Close() //nolint:errcheck // it was only read
	// A read from a pipe or a terminal can wait for ever, unless the file is closed.
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
		err = to.Sync() // or a power failure could leave a whole name for half of a file
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return did, err
	}
	if err := absent(out); err != nil { // somebody else may have made it meanwhile
		return did, err
	}
	return did, os.Rename(part, out)
}

// absent returns an error if there is a file of that name, of whatever kind: a rename
// would replace it, were it a device or a link.
func absent(path string) error {
	switch info, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists (%s), and would be replaced: choose another name, or remove it", path, info.Mode())
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}
