package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/powercut"
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

	book   *powercut.Book   // of the instants before which the disk was cut
	others []*powercut.Book // of the further images of the disk
	broken []string
	cuts   int // power cuts, of all kinds
	lossy  int // those that lost a write
	lost   int // writes of pages
}

func cutPower(ctx context.Context, b *bench, f guest.Fault, kind string, cuts int, deaf bool) (out outcome, err error) {
	dir, err := os.MkdirTemp(b.dir, f.Name)
	if err != nil {
		return out, err
	}
	c := &cutter{bench: b, fault: f, dir: dir, deaf: deaf, random: rand.New(rand.NewPCG(b.o.Seed, uint64(len(kind)))), book: powercut.NewBook()}
	if err := format(ctx, c.image(0), kind, cutSize); err != nil {
		return out, err
	}
	for life := 0; life <= cuts && err == nil && len(c.broken) == 0; life++ {
		if err = c.live(ctx, life < cuts); err != nil {
			err = fmt.Errorf("in life %d: %w", life+1, err)
		}
		b.progress(f.Name, fmt.Sprintf("%d of %d lives: %d acknowledged writes; %d IDs and numbers, %d failed calls; %d power cuts, %d findings",
			life+1, cuts+1, c.book.Writes, c.book.IDs, c.book.Failed, c.cuts, len(c.broken)))
	}
	row := Row{Fault: f.Name, Subject: fmt.Sprintf("directory store, %d writers", powercut.Writers), Group: Ours, Broken: c.broken}
	row.Verdict.IDs, row.Verdict.Duplicates = c.book.IDs, c.book.Duplicates
	row.Verdict.Failed, row.Verdict.Error = c.book.Failed, c.book.FirstFailed
	row.Note = fmt.Sprintf("%d acknowledged writes; %d of %d power cuts lost writes that were not flushed, %d in all", c.book.Writes, c.lossy, c.cuts, c.lost)
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
	if err := errors.Join(powercut.Copy(ctx, c.image(0), disk.Image), os.WriteFile(disk.Log, nil, 0o600)); err != nil {
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
		c.broken = append(c.broken, c.book.Add(facts...)...)
		return err
	}
	s.m.Kill()
	return c.cut(ctx, disk.Log, facts)
}

// hear compares what the machine tells of its disks, and returns the facts that its writers
// tell until all have issued IDs, and some time after that. A machine that writes until the end is
// killed.
func (c *cutter) hear(ctx context.Context, s *session, log string) (facts []powercut.Fact, err error) {
	var end time.Time        // none, before the comparison
	issued := map[int]bool{} // by writer
	for len(c.broken) == 0 { // what is broken may not go on
		m, err := s.next(end)
		if errors.Is(err, errHangs) {
			return facts, nil
		}
		switch {
		case err != nil:
			return facts, fmt.Errorf("with %d of %d writers: %w", len(issued), powercut.Writers, err)
		case m.Ask != "":
			if err := s.answer(ctx, m.Ask); err != nil {
				return facts, err
			}
		case m.Failed != "":
			c.broken = append(c.broken, m.Failed)
		case m.Found != nil && m.Found.Image > 0:
			c.broken = append(c.broken, c.others[m.Found.Image-1].Compare(*m.Found)...)
		case m.Found != nil:
			end = time.Now().Add(startTime)
			c.broken = append(c.broken, c.book.Compare(*m.Found)...)
		case m.Fact != nil:
			is, err := os.Stat(log)
			if err != nil {
				return facts, err
			}
			m.Fact.At = is.Size()
			facts = append(facts, *m.Fact)
			if m.Fact.Issued != "" && !issued[m.Fact.Writer] {
				issued[m.Fact.Writer] = true
				if len(issued) == powercut.Writers {
					end = time.Now().Add(time.Duration(c.random.Int64N(int64(writeTime))))
				}
			}
		}
	}
	return facts, nil
}

// cut makes the disks of power cuts at the end of the log, and at random instants before.
func (c *cutter) cut(ctx context.Context, path string, facts []powercut.Fact) error {
	log, err := powercut.ReadLog(path)
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
		entries := log.Len()
		if i > 0 {
			entries = c.random.IntN(log.Len() + 1)
		}
		lost, err := log.Image(ctx, base, c.image(i), entries, c.deaf, c.random)
		if err != nil {
			return err
		}
		c.cuts++
		c.lost += lost
		c.lossy += min(lost, 1)
		end := 0
		for end < len(facts) && facts[end].At <= log.End(entries) {
			end++
		}
		book := before.Clone()
		broken := book.Add(facts[:end]...)
		book.Cut()
		if i == 0 {
			c.book = book
			c.broken = append(c.broken, broken...)
		} else {
			c.others = append(c.others, book)
		}
	}
	return nil
}
