// Package blockdev is a disk that loses at a power cut the writes that were not flushed, as
// disks with a cache do. It serves itself to QEMU as an NBD server on a Unix socket.
package blockdev

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

const sector = 512

// page is how many sectors a disk writes at once or not at all: 4 KiB, as most disks do.
const page = 8

// maxCache is how many contents of sectors the cache has, 16 MiB: a disk writes a full cache
// by itself.
const maxCache = 32 << 10

// Disk is a disk with a cache that loses its content at a power cut. It is safe for use by
// several goroutines at once.
type Disk struct {
	mu     sync.Mutex
	file   *os.File // the durable content
	size   int64
	random *rand.Rand
	cache  map[int64][][]byte // by sector, the contents that are not durable, oldest first
	cached int                // contents in the cache
	off    bool               // the power is cut
	deaf   bool               // flushes do nothing
	stats  Stats
}

// Stats counts the sectors that the power cuts of a disk found in the cache.
type Stats struct {
	Dropped int // sectors whose last content a cut dropped
	Lossy   int // cuts that dropped any
	Kept    int // sectors whose last content a cut made durable
}

// Open opens the image of a disk. The seed decides which sectors survive a cut. A deaf disk
// answers flushes, and writes with force unit access, without making anything durable: a
// suite that finds nothing with a deaf disk tests nothing.
func Open(image string, seed uint64, deaf bool) (*Disk, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the image of a disk: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && (size == 0 || size%sector != 0) {
		err = fmt.Errorf("image %s has %d bytes, not a number of sectors of %d", image, size, sector)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Disk{file: f, size: size, deaf: deaf, cache: map[int64][][]byte{}, random: rand.New(rand.NewPCG(seed, 0))}, nil
}

// Close closes the image. The content of the cache is lost.
func (d *Disk) Close() error { return d.file.Close() }

// Stats returns the counts.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Cut cuts the power: from now on the disk answers no request. A disk writes its cache in
// any order, so of the cache, nothing becomes durable, or everything, or any content that
// each page had since its last flush. It tears no page: XFS refuses to mount a disk with a
// block of metadata of which one half is old.
func (d *Disk) Cut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	dropped := d.stats.Dropped
	keep := []float64{0, 0.5, 1, d.random.Float64()}[d.random.IntN(4)]
	pages := map[int64][]int64{} // the sectors of each
	for at := range d.cache {
		pages[at/page] = append(pages[at/page], at)
	}
	for _, n := range slices.Sorted(maps.Keys(pages)) {
		kept := d.random.Float64() < keep
		least := math.MaxInt // contents of a sector of the page
		for _, at := range pages[n] {
			least = min(least, len(d.cache[at]))
		}
		older := d.random.IntN(least)
		for _, at := range pages[n] {
			contents := d.cache[at]
			switch {
			case kept:
				d.stats.Kept++
			case keep > 0: // an older content may be durable all the same
				d.stats.Dropped++
				contents = contents[:older]
			default:
				d.stats.Dropped++
				contents = nil
			}
			if len(contents) == 0 {
				continue
			}
			if _, err := d.file.WriteAt(contents[len(contents)-1], at*sector); err != nil {
				return fmt.Errorf("write what a power cut keeps: %w", err)
			}
		}
	}
	if d.stats.Dropped > dropped {
		d.stats.Lossy++
	}
	clear(d.cache)
	d.cached = 0
	return nil
}

// On switches the power on again, with an empty cache.
func (d *Disk) On() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = false
}

// errOff says that the power is cut.
var errOff = errors.New("the power of the disk is cut")

// check returns an error if a request cannot be done. The caller has locked mu.
func (d *Disk) check(offset int64, length int) error {
	switch {
	case d.off:
		return errOff
	case offset < 0 || offset%sector != 0 || length%sector != 0 || offset > d.size-int64(length):
		return fmt.Errorf("request for %d bytes at %d of a disk of %d bytes with sectors of %d", length, offset, d.size, sector)
	}
	return nil
}

func (d *Disk) read(data []byte, offset int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(offset, len(data)); err != nil {
		return err
	}
	if _, err := d.file.ReadAt(data, offset); err != nil {
		return err
	}
	for i := 0; i < len(data) && len(d.cache) > 0; i += sector {
		if contents := d.cache[(offset+int64(i))/sector]; contents != nil {
			copy(data[i:i+sector], contents[len(contents)-1])
		}
	}
	return nil
}

// write keeps data: it belongs to the disk from now on.
func (d *Disk) write(data []byte, offset int64, fua bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(offset, len(data)); err != nil {
		return err
	}
	through := fua && !d.deaf
	if through {
		if _, err := d.file.WriteAt(data, offset); err != nil {
			return err
		}
	}
	for i := 0; i < len(data); i += sector {
		at := (offset + int64(i)) / sector
		if through {
			d.cached -= len(d.cache[at])
			delete(d.cache, at)
		} else {
			d.cache[at] = append(d.cache[at], data[i:i+sector])
			d.cached++
		}
	}
	if d.cached > maxCache {
		return d.empty()
	}
	return nil
}

func (d *Disk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(0, 0); err != nil {
		return err
	}
	if d.deaf {
		return nil
	}
	return d.empty()
}

// empty makes the content of the cache durable. The caller has locked mu.
func (d *Disk) empty() error {
	for at, contents := range d.cache {
		if _, err := d.file.WriteAt(contents[len(contents)-1], at*sector); err != nil {
			return err
		}
	}
	clear(d.cache)
	d.cached = 0
	return nil
}
