//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ledger keeps all IDs, or all numbers of one sequence, and finds those that came twice. They
// are in files, each of a range of values: IDs ascend with the time, so new ones concern a few
// files only, and the memory stays small however long the soak is. add may be called by any
// goroutine, the other methods by one at a time.
type ledger struct {
	dir   string
	shift uint // values with the same higher bits are in one file

	mu     sync.Mutex
	recent []entry // not in files yet
}

// entry is a value, and who got it when.
type entry struct {
	Value int64
	By    int64         // the number of the client
	At    time.Duration // since the start of the soak
}

// These shifts make a file of 16 s of the default layout's IDs, or of 64 Ki numbers.
const (
	idShift     = 22 + 14
	numberShift = 16
)

func newLedger(dir string, shift uint) (*ledger, error) {
	return &ledger{dir: dir, shift: shift}, os.Mkdir(dir, 0o700)
}

// add notes what a client got.
func (l *ledger) add(by int, at time.Duration, values ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range values {
		l.recent = append(l.recent, entry{v, int64(by), at})
	}
}

// check brings what was added since the last time into the files. It returns how many of
// these values were there before, and one of them.
func (l *ledger) check() (twice int64, example string, err error) {
	l.mu.Lock()
	recent := l.recent
	l.recent = nil
	l.mu.Unlock()
	slices.SortFunc(recent, byValue)
	for len(recent) > 0 {
		part := recent[0].Value >> l.shift
		n := slices.IndexFunc(recent, func(e entry) bool { return e.Value>>l.shift != part })
		if n < 0 {
			n = len(recent)
		}
		again, one, err := l.merge(part, recent[:n])
		if err != nil {
			return 0, "", fmt.Errorf("the ledger in %s: %w", l.dir, err)
		}
		twice += again
		example = cmp.Or(example, one)
		recent = recent[n:]
	}
	return twice, example, nil
}

func byValue(a, b entry) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.At, b.At))
}

// merge adds entries to the file of their range.
func (l *ledger) merge(part int64, added []entry) (twice int64, example string, err error) {
	path := filepath.Join(l.dir, strconv.FormatInt(part, 10))
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, "", err
	}
	n := len(text) / binary.Size(entry{})
	all := make([]entry, n, n+len(added))
	if err := binary.Read(bytes.NewReader(text), binary.LittleEndian, all); err != nil {
		return 0, "", err
	}
	all = append(all, added...)
	slices.SortFunc(all, byValue)
	kept := all[:0]
	for _, e := range all {
		if n := len(kept); n > 0 && kept[n-1].Value == e.Value {
			twice++
			example = fmt.Sprintf("%d came to client %d at %s and to client %d at %s", e.Value,
				kept[n-1].By, kept[n-1].At.Round(time.Millisecond), e.By, e.At.Round(time.Millisecond))
			continue
		}
		kept = append(kept, e)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, kept); err != nil {
		return 0, "", err
	}
	return twice, example, os.WriteFile(path, out.Bytes(), 0o600)
}
