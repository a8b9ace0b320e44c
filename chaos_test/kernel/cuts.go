package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/blockdev"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

const (
	defaultCuts = 3
	// cutSize is more than the least size of xfs. The image has holes.
	cutSize = 400 << 20
	// lifeLimit is from the boot to the cut.
	lifeLimit = 4 * time.Minute
	// writeTime is the longest time from the first ID of all writers to the cut, which
	// comes startTime after the comparison at the latest.
	writeTime = 2 * time.Second
	startTime = 10 * time.Second
	// One in hasty cuts comes at any instant of hastyTime, for example while the file
	// system recovers from the last one.
	hasty     = 6
	hastyTime = 2 * time.Second
)

func init() {
	for _, kind := range powercut.FileSystems {
		hostFaults[powercut.Prefix+kind] = func(ctx context.Context, b *bench, f guest.Fault) (outcome, error) {
			return cutPower(ctx, b, f, kind, false)
		}
	}
}

// cutter cuts the power of one machine after another, which write to one disk.
type cutter struct {
	bench  *bench
	fault  guest.Fault
	disk   *blockdev.Disk
	random *rand.Rand
	book   *powercut.Book
	kernel string
}

// cutPower cuts the power while processes write to a directory on a file system of the
// kind. A deaf disk ignores flushes.
func cutPower(ctx context.Context, b *bench, f guest.Fault, kind string, deaf bool) (out outcome, err error) {
	image := filepath.Join(b.dir, f.Name+".img")
	if err := format(ctx, image, kind, cutSize); err != nil {
		return out, err
	}
	disk, err := blockdev.Open(image, b.o.Seed, deaf)
	if err != nil {
		return out, err
	}
	defer func() { _ = disk.Close() }()
	c := &cutter{bench: b, fault: f, disk: disk, random: rand.New(rand.NewPCG(b.o.Seed, uint64(len(kind)))), book: powercut.NewBook()}
	cuts := b.o.Cuts
	if cuts == 0 {
		cuts = defaultCuts
	}
	for cut := 0; cut <= cuts && err == nil && len(c.book.Broken) == 0; cut++ {
		if err = c.live(ctx, cut < cuts); err != nil {
			err = fmt.Errorf("after %d cuts: %w", cut, err)
		}
		s := disk.Stats()
		b.progress(f.Name, fmt.Sprintf("%d of %d cuts: %d acknowledged writes; %d IDs and numbers, %d failed calls; the disk lost %d unflushed sectors at %d cuts, and kept %d; %d findings",
			min(cut+1, cuts), cuts, c.book.Writes, c.book.IDs, c.book.Failed, s.Dropped, s.Lossy, s.Kept, len(c.book.Broken)))
	}
	row := Row{Fault: f.Name, Subject: fmt.Sprintf("directory store, %d processes", powercut.Writers), Group: Ours, Broken: c.book.Broken}
	row.Verdict.IDs, row.Verdict.Duplicates = c.book.IDs, c.book.Duplicates
	row.Verdict.Failed, row.Verdict.Error = c.book.Failed, c.book.FirstFailed
	s := disk.Stats()
	row.Note = fmt.Sprintf("%d acknowledged writes; the disk lost %d sectors that were not flushed, at %d of %d cuts", c.book.Writes, s.Dropped, s.Lossy, cuts)
	return outcome{rows: []Row{row}, kernel: c.kernel}, err
}

// live boots a machine on the disk, compares what it finds with the facts, lets it write,
// and cuts its power. The last machine only shows that all writers go on.
func (c *cutter) live(ctx context.Context, cut bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lifeLimit, fmt.Errorf("the power was not cut within %v", lifeLimit))
	defer cancel()
	c.disk.On()
	server, err := blockdev.Serve(c.disk)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	config := c.bench.config(c.fault)
	config.Disks = []machine.Disk{{NBD: server.Socket()}}
	s, err := c.bench.boot(ctx, c.fault.Name, config)
	if err != nil {
		return err
	}
	defer s.close()
	c.kernel = s.ready.Kernel
	if err := s.send(guest.Request{Run: c.fault.Name, Seed: c.random.Uint64()}); err != nil {
		return err
	}
	var end, latest <-chan time.Time
	within := func(d time.Duration) {
		if end == nil {
			end = time.After(time.Duration(c.random.Int64N(int64(d))))
		}
	}
	if cut && c.random.IntN(hasty) == 0 {
		within(hastyTime)
	}
	for compared := false; ; {
		select {
		case line, ok := <-s.m.Lines():
			if !ok {
				return errors.Join(fmt.Errorf("the machine has ended, with %d of %d writers; %d calls failed, first: %s", c.book.Heard(), powercut.Writers, c.book.Failed, c.book.FirstFailed), s.m.Wait())
			}
			message, err := c.hear(ctx, s, line)
			if err != nil {
				return err
			}
			if message.Failed != "" {
				c.book.Break(message.Failed)
				return nil
			}
			if len(c.book.Broken) > 0 {
				return nil // what is broken may not go on
			}
			if message.found && cut {
				latest = time.After(startTime)
			}
			compared = compared || message.found
			if compared && c.book.Heard() == powercut.Writers {
				if !cut {
					return nil
				}
				within(writeTime)
			}
		case <-latest:
			within(1)
		case <-end:
			if err := c.disk.Cut(); err != nil {
				return err
			}
			defer c.book.Cut()
			for {
				select {
				case line, ok := <-s.m.Lines():
					if !ok {
						return nil
					}
					// The machine has sent it after what it tells was on the disk.
					if _, err := c.hear(ctx, s, line); err != nil {
						return err
					}
				default:
					return nil
				}
			}
		}
	}
}

// heard is a message of the guest.
type heard struct {
	guest.Message
	found bool // it tells what a directory has after a cut
}

// hear answers a message, or adds it to the book.
func (c *cutter) hear(ctx context.Context, s *session, line []byte) (h heard, err error) {
	damaged := func(err error) (heard, error) {
		return h, fmt.Errorf("a message of the guest is damaged: %w: %.200q", err, line)
	}
	if err := json.Unmarshal(line, &h.Message); err != nil {
		return damaged(err)
	}
	if h.Ask != "" {
		return h, s.answer(ctx, h.Ask)
	}
	if h.Ack == nil {
		return h, nil
	}
	var l powercut.Line
	if err := json.Unmarshal(h.Ack, &l); err != nil {
		return damaged(err)
	}
	if h.found = l.Found != nil; h.found {
		c.book.Compare(*l.Found)
	}
	if l.Fact != nil {
		c.book.Add(*l.Fact)
	}
	return h, nil
}
