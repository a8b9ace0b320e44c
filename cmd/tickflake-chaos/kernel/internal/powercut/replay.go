package powercut

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
)

const (
	sector = 512
	// page is what a disk writes at once or not at all: 4 KiB, as most disks do. XFS refuses
	// to mount a disk with a block of metadata of which one half is old.
	page = 4 << 10
)

// Log is what the driver blklogwrites of QEMU has logged: the writes and flushes of a disk,
// in the order in which they were issued. A write that has returned before a flush was issued
// stands before it.
type Log struct {
	path    string
	entries []entry
}

// entry is a write, or a flush, which has no data.
type entry struct {
	at, data, size int64 // where it begins on the disk, and its data in the log
}

// ReadLog reads a log up to the first entry that was not written to its end.
func ReadLog(path string) (Log, error) {
	l := Log{path: path}
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

// Len is the number of writes and flushes.
func (l Log) Len() int { return len(l.entries) }

// End is the place in the log behind so many entries.
func (l Log) End(entries int) int64 {
	if entries == 0 {
		return sector
	}
	last := l.entries[entries-1]
	return last.data + last.size
}

// Image makes the image of a disk whose power was cut behind so many entries, from the base
// that it had before. What was written before the last flush is durable. A disk writes its
// cache in any order, so of what was not flushed, nothing becomes durable, or everything, or any
// content that each page had since the flush. A deaf disk answers flushes without making anything
// durable: a suite that finds nothing with a deaf disk tests nothing. It returns how many writes
// of pages were lost.
func (l Log) Image(ctx context.Context, base, to string, entries int, deaf bool, random *rand.Rand) (lost int, err error) {
	if err := Copy(ctx, base, to); err != nil {
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
func (l Log) pages(from, to int, do func(n, at, data, size int64) error) error {
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

// Copy copies the image of a disk, which has holes.
func Copy(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	return nil
}
