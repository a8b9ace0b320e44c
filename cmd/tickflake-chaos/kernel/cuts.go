package kernel

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
)

const (
	cuts = 3 // per file system
	// imagesPerCut is how many further instants of each machine's life have a power cut.
	imagesPerCut = 7
	// cutSize is more than the least size of xfs. The image has holes.
	cutSize = 400 << 20
	// lifeLimit is from the boot to the cut.
	lifeLimit = 4 * time.Minute
	// writeTime is the longest time from the first ID of all writers to the cut, which
	// comes startTime after the comparison at the latest.
	writeTime = 2 * time.Second
	startTime = 10 * time.Second
)

// cutter cuts the power of one machine after another, which go on with one disk. QEMU logs
// what each writes, so that a disk can be made for a power cut at any instant of its life: one
// is that of the next machine, which looks at the others first.
type cutter struct {
	bench  *bench
	fault  guest.Fault
	dir    string
	random *rand.Rand
	deaf   bool // the disk ignores flushes
	kernel string

	book   *book   // of the instants before which the disk was cut
	others []*book // of the further images of the disk
	broken []string
	cuts   int // power cuts, of all kinds
	lossy  int // those that lost a write
	lost   int // writes of pages
}

func cutPower(ctx context.Context, b *bench, f guest.Fault, cuts int, deaf bool) (out outcome, err error) {
	dir, err := os.MkdirTemp(b.dir, f.Name)
	if err != nil {
		return out, err
	}
	c := &cutter{bench: b, fault: f, dir: dir, deaf: deaf, random: rand.New(rand.NewPCG(b.o.Seed, uint64(len(f.CutsPower)))), book: newBook()}
	if err := format(ctx, c.image(0), f.CutsPower, cutSize); err != nil {
		return out, err
	}
	for life := 0; life <= cuts && err == nil && len(c.broken) == 0; life++ {
		if err = c.live(ctx, life < cuts); err != nil {
			err = fmt.Errorf("in life %d: %w", life+1, err)
		}
		b.progress(f.Name, fmt.Sprintf("%d of %d lives: %d acknowledged writes; %d IDs and numbers, %d failed calls; %d power cuts, %d findings",
			life+1, cuts+1, c.book.writes, c.book.IDs, c.book.Failed, c.cuts, len(c.broken)))
	}
	row := Row{Fault: f.Name, Subject: fmt.Sprintf("directory store, %d writers", guest.Writers), Group: Ours, Broken: c.broken, Verdict: c.book.Verdict}
	row.Note = fmt.Sprintf("%d acknowledged writes; %d of %d power cuts lost writes that were not flushed, %d in all", c.book.writes, c.lossy, c.cuts, c.lost)
	return outcome{rows: []Row{row}, kernel: c.kernel}, err
}

// image is the path of a disk after a power cut: 0 is the one that the next machine goes on with.
func (c *cutter) image(n int) string { return filepath.Join(c.dir, fmt.Sprint("image-", n)) }

// live boots a machine, compares the disks with the facts, lets it write, and cuts its
// power. The last machine only shows that all writers go on.
func (c *cutter) live(ctx context.Context, cut bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lifeLimit, fmt.Errorf("the power was not cut within %v", lifeLimit))
	defer cancel()
	disk := machine.Disk{Image: filepath.Join(c.dir, "disk"), Log: filepath.Join(c.dir, "log")}
	if err := errors.Join(copyImage(ctx, c.image(0), disk.Image), os.WriteFile(disk.Log, nil, 0o600)); err != nil {
		return err
	}
	config := c.bench.config(c.fault)
	config.Disks = []machine.Disk{disk}
	for i := range c.others {
		config.Disks = append(config.Disks, machine.Disk{Image: c.image(i + 1)})
	}
	s, err := c.bench.boot(ctx, c.fault.Name, config)
	if err != nil {
		return err
	}
	defer s.close()
	c.kernel = s.kernel
	if err := s.send(guest.Request{Run: c.fault.Name, Seed: c.random.Uint64()}); err != nil {
		return err
	}
	facts, err := c.hear(ctx, s, disk.Log)
	if !cut || err != nil || len(c.broken) > 0 {
		c.broken = append(c.broken, c.book.add(facts...)...)
		return err
	}
	s.m.Kill()
	return c.cut(ctx, disk.Log, facts)
}

// hear compares what the machine tells of its disks, and returns the facts that its writers
// tell until all have issued IDs, and some time after that. A machine that writes until the end is
// killed.
func (c *cutter) hear(ctx context.Context, s *session, log string) (facts []guest.Fact, err error) {
	var end time.Time        // none, before the comparison
	issued := map[int]bool{} // by writer
	for len(c.broken) == 0 { // what is broken may not go on
		m, err := s.next(end)
		if errors.Is(err, errHangs) {
			return facts, nil
		}
		switch {
		case err != nil:
			return facts, fmt.Errorf("with %d of %d writers: %w", len(issued), guest.Writers, err)
		case m.Ask != "":
			if err := s.answer(ctx, m.Ask); err != nil {
				return facts, err
			}
		case m.Failed != "":
			c.broken = append(c.broken, m.Failed)
		case m.Found != nil && m.Found.Image > 0:
			c.broken = append(c.broken, c.others[m.Found.Image-1].compare(*m.Found)...)
		case m.Found != nil:
			end = time.Now().Add(startTime)
			c.broken = append(c.broken, c.book.compare(*m.Found)...)
		case m.Fact != nil:
			is, err := os.Stat(log)
			if err != nil {
				return facts, err
			}
			m.Fact.At = is.Size()
			facts = append(facts, *m.Fact)
			if m.Fact.Issued != "" && !issued[m.Fact.Writer] {
				issued[m.Fact.Writer] = true
				if len(issued) == guest.Writers {
					end = time.Now().Add(time.Duration(c.random.Int64N(int64(writeTime))))
				}
			}
		}
	}
	return facts, nil
}

// cut makes the disks of power cuts at the end of the log, and at random instants before.
func (c *cutter) cut(ctx context.Context, path string, facts []guest.Fact) error {
	log, err := readLog(path)
	if err != nil {
		return err
	}
	base := filepath.Join(c.dir, "base")
	if err := os.Rename(c.image(0), base); err != nil {
		return err
	}
	before := c.book
	c.others = nil
	for i := range imagesPerCut + 1 {
		entries := len(log.entries)
		if i > 0 {
			entries = c.random.IntN(len(log.entries) + 1)
		}
		lost, err := log.image(ctx, base, c.image(i), entries, c.deaf, c.random)
		if err != nil {
			return err
		}
		c.cuts++
		c.lost += lost
		c.lossy += min(lost, 1)
		end := 0
		for end < len(facts) && facts[end].At <= log.end(entries) {
			end++
		}
		book := before.clone()
		broken := book.add(facts[:end]...)
		book.cutOff()
		if i == 0 {
			c.book = book
			c.broken = append(c.broken, broken...)
		} else {
			c.others = append(c.others, book)
		}
	}
	return nil
}

// book has the facts of all writers, over all power cuts of a disk. It is not safe for use by
// several goroutines at once.
type book struct {
	Verdict     // of IDs and numbers
	writes  int // acknowledged writes of cells

	least  map[string]int64 // the version that each cell must have
	issued check.Ledger     // of IDs and numbers, by cuts
	cut    int
}

// newBook returns a book without facts.
func newBook() *book { return &book{least: map[string]int64{}, issued: check.Ledger{}} }

// clone returns a copy.
func (b *book) clone() *book {
	c := *b
	c.least, c.issued = maps.Clone(b.least), maps.Clone(b.issued)
	return &c
}

// add notes facts. It returns findings of what was issued again.
func (b *book) add(facts ...guest.Fact) (broken []string) {
	for _, f := range facts {
		switch {
		case f.Failed != "":
			b.Failed++
			b.Error = cmp.Or(b.Error, f.Failed)
		case f.Issued == "":
			b.least[f.Cell] = max(b.least[f.Cell], f.Version)
			b.writes++
		default:
			b.IDs++
			if before, twice := b.issued.Add(f.Issued, check.Sight{By: b.cut}); twice {
				b.Duplicates++
				broken = append(broken, fmt.Sprintf("cut %d: %s was issued again, last before cut %d", b.cut, f.Issued, before.By+1))
			}
		}
	}
	return broken
}

// cutOff notes that the power was cut.
func (b *book) cutOff() { b.cut++ }

// compare compares what a directory has after a cut with the facts, and returns its findings.
func (b *book) compare(f guest.Found) (broken []string) {
	for _, text := range f.Damaged {
		broken = append(broken, fmt.Sprintf("cut %d: damaged: %s", b.cut, text))
	}
	for key, least := range b.least {
		if f.Has[key] < least {
			broken = append(broken, fmt.Sprintf("cut %d: the version of cell %s is %d, and %d was acknowledged", b.cut, key, f.Has[key], least))
		}
	}
	return broken[:min(len(broken), 20)] // one lost file system breaks a promise of every cell
}

const (
	sector = 512
	// page is what a disk writes at once or not at all: 4 KiB, as most disks do. XFS refuses
	// to mount a disk with a block of metadata of which one half is old.
	page = 4 << 10
)

// diskLog is what the driver blklogwrites of QEMU has logged: the writes and flushes of a disk,
// in the order in which they were issued. A write that has returned before a flush was issued
// stands before it.
type diskLog struct {
	path    string
	entries []entry
}

// entry is a write, or a flush, which has no data.
type entry struct {
	at, data, size int64 // where it begins on the disk, and its data in the log
}

// readLog reads a log up to the first entry that was not written to its end.
func readLog(path string) (diskLog, error) {
	l := diskLog{path: path}
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer func() { _ = f.Close() }()
	is, err := f.Stat()
	if err != nil {
		return l, err
	}
	for at := int64(sector); ; { // behind the superblock, whose count of entries is late
		var header struct{ Sector, Sectors, Flags, Length uint64 }
		err := binary.Read(io.NewSectionReader(f, at, sector), binary.LittleEndian, &header)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && header.Sectors|header.Flags == 0 {
			return l, nil
		}
		if err != nil {
			return l, err
		}
		e := entry{int64(header.Sector) * sector, at + sector, int64(header.Sectors) * sector}
		if at = e.data + e.size; at > is.Size() {
			return l, nil
		}
		l.entries = append(l.entries, e)
	}
}

// end is the place in the log behind so many entries.
func (l diskLog) end(entries int) int64 {
	if entries == 0 {
		return sector
	}
	last := l.entries[entries-1]
	return last.data + last.size
}

// image makes the image of a disk whose power was cut behind so many entries, from the base
// that it had before. What was written before the last flush is durable. A disk writes its
// cache in any order, so of what was not flushed, nothing becomes durable, or everything, or any
// content that each page had since the flush. A deaf disk answers flushes without making anything
// durable: a suite that finds nothing with a deaf disk tests nothing. It returns how many writes
// of pages were lost.
func (l diskLog) image(ctx context.Context, base, to string, entries int, deaf bool, random *rand.Rand) (lost int, err error) {
	if err := copyImage(ctx, base, to); err != nil {
		return 0, err
	}
	image, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	log, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	flushed := 0
	for i, e := range l.entries[:entries] {
		if e.size == 0 && !deaf {
			flushed = i
		}
	}
	written := map[int64]int{} // how often each page was since the flush
	_ = l.pages(flushed, entries, func(n, _, _, _ int64) error { written[n]++; return nil })
	keep := []float64{0, 0.5, 1, random.Float64()}[random.IntN(4)]
	durable := map[int64]int{} // how many of the writes of a page are
	_ = l.pages(flushed, entries, func(n, _, _, _ int64) error {
		if _, drawn := durable[n]; drawn {
			return nil
		}
		switch durable[n] = written[n]; {
		case keep == 0:
			durable[n] = 0
		case random.Float64() >= keep:
			durable[n] = random.IntN(written[n]) // an older content may be durable all the same
		}
		lost += written[n] - durable[n]
		return nil
	})
	var content [page]byte
	write := func(_, at, data, size int64) error {
		_, err := log.ReadAt(content[:size], data)
		if err == nil {
			_, err = image.WriteAt(content[:size], at)
		}
		return err
	}
	if err := l.pages(0, flushed, write); err != nil {
		return lost, err
	}
	return lost, l.pages(flushed, entries, func(n, at, data, size int64) error {
		if durable[n]--; durable[n] < 0 {
			return nil
		}
		return write(n, at, data, size)
	})
}

// pages calls do for each page, or part of one, that was written, with its number, and where it
// begins on the disk and in the log.
func (l diskLog) pages(from, to int, do func(n, at, data, size int64) error) error {
	for _, e := range l.entries[from:to] {
		for e.size > 0 {
			size := min(e.size, page-e.at%page)
			if err := do(e.at/page, e.at, e.data, size); err != nil {
				return fmt.Errorf("replay the log of a disk: %w", err)
			}
			e = entry{e.at + size, e.data + size, e.size - size}
		}
	}
	return nil
}

// copyImage copies the image of a disk, which has holes.
func copyImage(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	return nil
}
