package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const cutDir = "/cut"

// fileSystems are those whose power is cut.
var fileSystems = []string{"ext4", "xfs", "btrfs"}

// powerCutFaults are those that package kernel runs on several machines.
func powerCutFaults() (all []Fault) {
	for _, kind := range fileSystems {
		var modules []string
		if kind != "ext4" { // which is in the kernel
			modules = append(modules, kind)
		}
		all = append(all, Fault{
			Name:      "power-cut-" + kind,
			About:     "the disk loses its power, and all or some of the writes that were not flushed, while 8 writers use a directory on " + kind,
			Kind:      Disks,
			CutsPower: kind,
			Modules:   modules,
			Run:       func(s *Stage) { cutPower(s, kind) },
		})
	}
	return all
}

// cutPower tells the host what the directories of all disks have after a power cut, that of
// the first last, and lets processes write there until the next one.
func cutPower(s *Stage, kind string) {
	disks, err := filepath.Glob("/dev/vd[b-z]")
	if len(disks) == 0 {
		s.must(fmt.Errorf("the machine has no disk for the writers: %v", err))
	}
	dir := filepath.Join(cutDir, "ids")
	for image, disk := range slices.Backward(disks) {
		if kind == "btrfs" { // it remembers a file system by its name, which all images have
			s.must(forgetDisks())
		}
		s.must(mount(disk, cutDir, kind))
		found, err := readCells(dir)
		if err != nil {
			s.must(fmt.Errorf("read the directory of %s after a power cut: %w", disk, err))
		}
		found.Image = image
		s.host.send(Message{Found: &found})
		if image > 0 {
			s.must(unix.Unmount(cutDir, 0))
		}
	}
	defer func() { _ = unix.Unmount(cutDir, unix.MNT_DETACH) }()
	var running sync.WaitGroup
	for i := range Writers {
		running.Go(func() {
			tell := func(f Fact) {
				f.Writer = i
				s.host.send(Message{Fact: &f})
			}
			tell(Fact{Failed: fmt.Sprintf("it has ended: %v", write(dir, i, tell))})
		})
	}
	running.Wait()
	s.must(errors.New("all writers have ended"))
}

// forgetDisks is "btrfs device scan --forget".
func forgetDisks() error {
	const forget = 1<<30 | 4096<<16 | 0x94<<8 | 5 // BTRFS_IOC_FORGET_DEV
	control, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	var all [4096]byte
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, control.Fd(), forget, uintptr(unsafe.Pointer(&all))); number != 0 {
		return fmt.Errorf("forget the disks of btrfs: %w", number)
	}
	return nil
}

const (
	// writeLimit is how long a call may take where many processes sync one emulated disk.
	writeLimit = 20 * time.Second
	// writeWindow is longer than a write takes on a busy host: a grant that has ended before it
	// is acknowledged is of no use.
	writeWindow = 10 * time.Second
	// writePace is from a call to the next, and ownPace from a write of a cell of its own to the
	// next: each is synced, and the disk of a machine on a busy host is slow.
	writePace = 20 * time.Millisecond
	ownPace   = 100 * time.Millisecond
)

// writtenSequences are those that every writer takes numbers from.
var writtenSequences = map[string]sequence.Definition{
	"ordered":   {Mode: sequence.Ordered, Start: 1},
	"segmented": {Mode: sequence.Segmented, Start: 1, MinStep: 1, MaxStep: 2},
}

// tellingStore is a directory that tells each swap that it has acknowledged.
type tellingStore struct {
	stores.Store
	tell func(Fact)
}

func (s tellingStore) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := s.Store.Swap(ctx, key, version, value)
	if err == nil {
		s.tell(Fact{Cell: key, Version: int64(next)})
	}
	return next, err
}

// write issues IDs and numbers on the directory until the power is cut, and tells each fact. It returns
// an error if nothing can be claimed.
func write(dir string, writer int, tell func(Fact)) error {
	begin, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	opened, err := stores.Open(begin, dir)
	if err != nil {
		return err
	}
	store := tellingStore{opened, tell}
	quiet := slog.New(slog.DiscardHandler)
	keeper, err := lease.Claim(begin, store, lease.WithWindow(writeWindow), lease.WithTimeout(writeLimit), lease.WithLogger(quiet))
	if err != nil {
		return err
	}
	ids, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return errors.Join(err, keeper.Close())
	}
	calls := []func(context.Context) (Fact, error){func(ctx context.Context) (Fact, error) {
		id, err := ids.NextContext(ctx)
		return Fact{Issued: fmt.Sprint("ID ", id)}, err
	}}
	for name, definition := range writtenSequences {
		numbers, err := sequence.Open(begin, store, name, sequence.WithDefinition(definition),
			sequence.WithTimeout(writeLimit), sequence.WithLogger(quiet))
		if err != nil {
			return err
		}
		calls = append(calls, func(ctx context.Context) (Fact, error) {
			n, err := numbers.Next(ctx)
			return Fact{Issued: fmt.Sprintf("number %d of %s", n, name)}, err
		})
	}
	// A cell of its own is written often.
	own := fmt.Sprintf("own/%d", writer)
	calls = append(calls, func(ctx context.Context) (Fact, error) {
		cell, err := store.Read(ctx, own)
		if err == nil {
			_, err = store.Swap(ctx, own, cell.Version, fmt.Append(nil, time.Now()))
		}
		time.Sleep(ownPace)
		return Fact{}, err
	})
	var running sync.WaitGroup
	for _, next := range calls {
		running.Go(func() {
			for ; ; time.Sleep(writePace) {
				turn, cancel := context.WithTimeout(context.Background(), writeLimit)
				fact, err := next(turn)
				cancel()
				if err != nil {
					fact = Fact{Failed: err.Error()}
				}
				if fact != (Fact{}) {
					tell(fact)
				}
			}
		})
	}
	running.Wait()
	return nil
}

// readCells reads a directory, which it makes if there is none.
func readCells(dir string) (Found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	f := Found{Has: map[string]int64{}}
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return f, err
	}
	cells, err := store.List(ctx, "", "~", 10_000)
	if errors.Is(err, stores.ErrDamaged) {
		f.Damaged = append(f.Damaged, err.Error())
	} else if err != nil {
		return f, err
	}
	for _, cell := range cells {
		f.Has[cell.Key] = int64(cell.Version)
	}
	return f, nil
}
