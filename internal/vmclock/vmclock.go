// Package vmclock tells a copy of this machine's memory from its original: by the page of a VMClock
// device, in which the hypervisor changes a marker before a restored machine runs its first instruction.
// The page is that of Linux's include/uapi/linux/vmclock-abi.h, in little-endian order:
//
//	0 u32 magic "VCLK"      12 u32 seq_count, odd while the hypervisor writes
//	4 u32 size              16 u64 disruption_marker: of copies and live migrations
//	8 u16 version           24 u64 flags
//	                       104 u64 vm_generation_counter: of copies, if a flag says so
//
// You need these names: [Open] returns a [Page], whose Marker is the word to compare.
package vmclock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tickflake/tickflake/internal/word"
)

// Auto stands for the first device, as the empty string does, and Off for none.
const (
	Auto = "auto"
	Off  = "off"
)

// Page is that of a device. It stays mapped until the process ends.
type Page struct {
	// Marker is the word that has another value in each copy of the memory. Nobody writes it if there is no
	// device. A caller compares it with what it was when its grant was made.
	Marker *word.Uint64
	By     string // by what copies are noticed, as "/dev/vmclock0, vm_generation_counter"; "" if they are not
}

// devices is where the devices are, and none is the page without one.
var devices, none = "/dev/vmclock*", &Page{Marker: new(word.Uint64)}

// pages are those that were opened, by device, so that each is mapped, and logged, once.
var (
	mu    sync.Mutex
	pages = map[string]*Page{}
)

// Open maps the page of a device, or of the first /dev/vmclock* for Auto. It logs once whether copies are noticed, and
// by what. The page of a device that cannot be used, or is not there, stands for none; one that was named is an error.
func Open(device string, log *slog.Logger) (*Page, error) {
	path := device
	switch device {
	case Auto, "":
		device, path = Auto, devices
		if found, _ := filepath.Glob(devices); len(found) > 0 { // the pattern is valid
			path = found[0]
		}
	}
	p, err, before := open(device, path)
	if before || err != nil && device != Auto {
		return p, err
	}
	const not = "vmclock: copies of this machine's memory are not noticed"
	switch {
	case device == Off:
		log.Info("vmclock: copies of this machine's memory are not looked for (off)")
	case err == nil:
		log.Info("vmclock: copies of this machine's memory are noticed", "by", p.By)
	case path == devices:
		log.Info(not + ": no " + devices + " is visible to this process; after a VM snapshot call Restored (docs/operate.md#restored-memory)")
	case errors.Is(err, fs.ErrPermission):
		log.Info(not+`: give this user's group the device by a udev rule: KERNEL=="vmclock*", GROUP="vmclock", MODE="0440"`, "err", err)
	default:
		log.Warn(not, "err", err)
	}
	return p, nil
}

// open opens a device, and reports whether that was done before. It does not log: a handler of the log may issue IDs, and
// so come here.
func open(device, path string) (p *Page, err error, before bool) {
	mu.Lock()
	defer mu.Unlock()
	if p = pages[device]; p != nil {
		return p, nil, true
	}
	if p = none; device != Off {
		p, err = read(path)
	}
	if err == nil || device == Auto {
		pages[device] = p
	}
	return p, err, false
}

// The layout of the page.
const (
	pageSize = 4096 // that can be mapped

	sequenceAt, disruptionAt, flagsAt, generationAt = 12, 16, 24, 104

	hasGeneration = 1 << 8 // of the flags
	reads         = 1000   // of a page that is being written
)

// read maps a page, checks it, and chooses its marker. A strange page stays mapped, since there is only one. With an
// error, the page is none.
func read(device string) (*Page, error) {
	page, err := mapPage(device)
	if err != nil {
		return none, fmt.Errorf("vmclock: %w", err)
	}
	if is := string(page[:4]); is != "VCLK" {
		return none, fmt.Errorf("vmclock: %s is no VMClock: it begins with %q, want \"VCLK\"", device, is)
	}
	sequence := (*atomic.Uint32)(unsafe.Pointer(&page[sequenceAt]))
	for range reads {
		before := sequence.Load()
		size, version, flags := binary.LittleEndian.Uint32(page[4:]), binary.LittleEndian.Uint16(page[8:]), binary.LittleEndian.Uint64(page[flagsAt:])
		if page[sequenceAt]&1 != 0 || sequence.Load() != before {
			continue
		}
		if version != 1 || size < flagsAt+8 {
			return none, fmt.Errorf("vmclock: %s has version %d and size %d, want version 1 and at least %d bytes", device, version, size, flagsAt+8)
		}
		at, by := disruptionAt, "disruption_marker"
		if flags&hasGeneration != 0 && size >= generationAt+8 {
			at, by = generationAt, "vm_generation_counter"
		}
		return &Page{word.Mapped(unsafe.Pointer(&page[at])), device + ", " + by}, nil
	}
	return none, fmt.Errorf("vmclock: %s was being written in %d reads", device, reads)
}
