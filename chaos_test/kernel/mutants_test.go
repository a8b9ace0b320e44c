package kernel_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// The mutants are the bugs of known generators, as programs. Their tick is long, so that
// two visits of the clock to one instant meet in one tick.
const (
	mutantTick = 100 * time.Millisecond
	mutantBits = 16
	mutantMask = 1<<mutantBits - 1
)

// control is the name of the generator that is no mutant.
const control = "control"

// mutants returns them as subjects. Each promises what its users believed.
func mutants() []subject.Subject {
	var all []subject.Subject
	for _, m := range []struct {
		name, how string
		open      func(dir string) (func() (int64, error), error)
		bound     time.Duration
		shares    bool
	}{
		{name: "M1", how: "the sequence is reset before the clock is found to be behind", open: openM1},
		{name: "M2", how: "the last timestamp is stored after the fact, every 3 s", open: openM2},
		{name: "M3", how: "the clock may be 10 s behind, and the sequence wraps meanwhile", open: openM3},
		{name: "M4", how: "only now == last is looked at", open: openM4},
		{name: "M5", how: "a lease is checked before use, and not at use", open: openM5, shares: true},
		{name: "M6", how: "the sequence is read, changed and written without a lock", open: openM6},
		{name: "M8", how: "it sleeps for the whole step", open: openM8, bound: 10 * time.Millisecond},
		{name: "M10", how: "its state file is written in place", open: openM10},
		{name: "M12", how: "a claim begins at the clock, and not at the cell's limit", open: openM12},
		{name: "M13", how: "a holder that issued nothing releases a limit below its own floor", open: openM13, shares: true},
		{name: control, how: "sound", open: openControl},
	} {
		bound := time.Duration(-1)
		if m.bound > 0 {
			bound = m.bound
		}
		all = append(all, subject.Subject{
			Name: m.name, Group: "mutant", How: m.how, Numbers: true, Restarts: true, Shares: m.shares, Bound: bound, Clock: "raw",
			Open: func(_ context.Context, at subject.Place) (subject.Source, error) {
				next, err := m.open(at.Dir)
				if err != nil {
					return subject.Source{}, err
				}
				return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
					id, err := next()
					return strconv.FormatInt(id, 10), 0, err
				}}, nil
			},
		})
	}
	return all
}

// ticks reads the wall clock.
func ticks() int64 { return time.Now().UnixNano() / int64(mutantTick) }

// after waits for a tick after last.
func after(last int64) int64 {
	for {
		now := ticks()
		if now > last {
			return now
		}
		time.Sleep(time.Duration(last+1)*mutantTick - time.Duration(time.Now().UnixNano()))
	}
}

// mutant is the state of most generators: the last tick, and its last sequence number.
type mutant struct{ last, seq int64 }

func behind(last, now int64) error { return fmt.Errorf("the clock is %d ticks behind", last-now) }

// next is sound as long as the process lives.
func (m *mutant) next(now int64) (int64, error) {
	switch {
	case now < m.last:
		return 0, behind(m.last, now)
	case now > m.last:
		m.seq = 0
	default:
		if m.seq = (m.seq + 1) & mutantMask; m.seq == 0 {
			now = after(m.last)
		}
	}
	m.last = now
	return now<<mutantBits | m.seq, nil
}

// twitter-archive/snowflake issue 6
func openM1(string) (func() (int64, error), error) {
	var m mutant
	return func() (int64, error) {
		now := ticks()
		if now == m.last {
			m.seq = (m.seq + 1) & mutantMask
		} else {
			m.seq = 0
		}
		if now < m.last {
			return 0, behind(m.last, now)
		}
		m.last = now
		return now<<mutantBits | m.seq, nil
	}, nil
}

// Meituan-Dianping/Leaf issue 216
func openM2(dir string) (func() (int64, error), error) {
	kept := record[int64]{filepath.Join(dir, "last")}
	reported, err := kept.read()
	if err != nil {
		return nil, err
	}
	m := mutant{last: reported}
	return func() (int64, error) {
		id, err := m.next(ticks())
		if err == nil && m.last >= reported+int64(3*time.Second/mutantTick) {
			reported = m.last
			err = kept.replace(reported)
		}
		return id, err
	}, nil
}

// f4b6a3/tsid-creator pull request 24. The sequence has 7 bits here: it wraps within a
// second, and seldom within a tick, where the mutant would sleep while the clock steps.
func openM3(string) (func() (int64, error), error) {
	const tolerance, mask = int64(10 * time.Second / mutantTick), 1<<7 - 1
	var m mutant
	return func() (int64, error) {
		now := ticks()
		switch {
		case now < m.last-tolerance:
			return 0, behind(m.last, now)
		case now < m.last:
			now = m.last
			m.seq = (m.seq + 1) & mask
		case now == m.last:
			if m.seq = (m.seq + 1) & mask; m.seq == 0 {
				now = after(m.last)
			}
		default:
			m.seq = 0
		}
		m.last = now
		return now<<mutantBits | m.seq, nil
	}, nil
}

// bwmarrin/snowflake issue 20, on the wall clock
func openM4(string) (func() (int64, error), error) {
	var m mutant
	return func() (int64, error) {
		now := ticks()
		if now == m.last {
			m.seq = (m.seq + 1) & mutantMask
		} else {
			m.seq = 0
		}
		m.last = now
		return now<<mutantBits | m.seq, nil
	}, nil
}

// openM5 has a lease of 1 s in a file. It looks at it at every hundredth call. A second
// process waits until the lease has ended.
func openM5(dir string) (func() (int64, error), error) {
	const length = int64(time.Second / mutantTick)
	lease := record[struct{ Holder, End int64 }]{filepath.Join(dir, "lease")}
	me := int64(os.Getpid())
	held := func() (bool, error) {
		is, err := lease.read()
		now := ticks()
		if err != nil || is.Holder != me && now < is.End {
			return false, err
		}
		is.Holder, is.End = me, now+length
		return true, lease.replace(is)
	}
	if err := await(held); err != nil {
		return nil, err
	}
	var m mutant
	calls := 0
	return func() (int64, error) {
		if calls++; calls%100 == 0 {
			if ok, err := held(); !ok {
				calls-- // the next call looks again
				return 0, cmp.Or(err, errLost)
			}
		}
		return m.next(ticks())
	}, nil
}

// openM6 has two callers at a time, for fifty IDs each.
func openM6(string) (func() (int64, error), error) {
	var word atomic.Int64 // last<<mutantBits | seq
	var ids []int64
	return func() (int64, error) {
		if len(ids) == 0 {
			var callers sync.WaitGroup
			ids = make([]int64, 100)
			for _, own := range [][]int64{ids[:50], ids[50:]} {
				callers.Go(func() {
					for i := range own {
						own[i] = max(word.Load()+1, ticks()<<mutantBits)
						word.Store(own[i])
					}
				})
			}
			callers.Wait()
		}
		id := ids[0]
		ids = ids[1:]
		return id, nil
	}, nil
}

// sony/sonyflake issue 39
func openM8(string) (func() (int64, error), error) {
	var m mutant
	return func() (int64, error) {
		if lead := m.last - ticks(); lead > 0 {
			time.Sleep(time.Duration(lead) * mutantTick)
		}
		return m.next(max(ticks(), m.last))
	}, nil
}

// openM10 is a counter that writes its state for each number, line by line, and treats a
// file that it cannot read as a missing one.
func openM10(dir string) (func() (int64, error), error) {
	path := filepath.Join(dir, "state")
	var last int64
	if text, err := os.ReadFile(path); err == nil {
		_, number, _ := strings.Cut(string(text), "last ")
		last, _ = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	}
	return func() (int64, error) {
		file, err := os.Create(path)
		if err != nil {
			return 0, err
		}
		for _, line := range []string{"counter m10", "host tickflake", "version 1", fmt.Sprintf("last %d", last+1)} {
			if _, err := fmt.Fprintln(file, line); err != nil {
				return 0, errors.Join(err, file.Close())
			}
		}
		last++
		return last, file.Close()
	}, nil
}

// openM12 keeps a limit as it should, and does not look at it when it starts.
func openM12(dir string) (func() (int64, error), error) { return openLease(dir, false) }

// openControl is sound: the faults that catch the mutants must find nothing here.
func openControl(dir string) (func() (int64, error), error) { return openLease(dir, true) }

// openLease reserves a second of ticks at a time, before it uses them.
func openLease(dir string, fromLimit bool) (func() (int64, error), error) {
	const window = int64(time.Second / mutantTick)
	cell := record[int64]{filepath.Join(dir, "cell")}
	limit, err := cell.read()
	if err != nil {
		return nil, err
	}
	if !fromLimit {
		limit = ticks()
	}
	m := mutant{last: limit - 1, seq: mutantMask}
	return func() (int64, error) {
		now := ticks()
		if now == m.last && m.seq == mutantMask {
			now = after(m.last)
		}
		if now >= limit {
			if err := cell.replace(now + window); err != nil {
				return 0, err
			}
			limit = now + window
		}
		return m.next(now)
	}, nil
}

// openM13 holds 10 s of ticks, and extends that each second. When the cell has not changed
// for longer, a second process claims the ticks behind. It gives them back at once, because
// it has issued nothing, and writes its clock as the limit instead of its floor.
func openM13(dir string) (func() (int64, error), error) {
	const window, extend = int64(10 * time.Second / mutantTick), int64(time.Second / mutantTick)
	cell := record[int64]{filepath.Join(dir, "cell")}
	limit, err := cell.read()
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		seen, changed := limit, ticks()
		err = await(func() (bool, error) {
			is, err := cell.read()
			now := ticks()
			if is != seen {
				seen, changed = is, now
			}
			return now > changed+2*extend, err
		})
		if limit = ticks(); err == nil {
			err = cell.replace(limit) // of the claim that was not used
		}
	}
	floor := max(ticks(), limit)
	limit = floor + window
	if err = cmp.Or(err, cell.replace(limit)); err != nil {
		return nil, err
	}
	lost := false
	m := mutant{last: floor - 1, seq: mutantMask}
	return func() (int64, error) {
		now := ticks()
		if !lost && now >= limit-window+extend {
			is, err := cell.read()
			if err != nil {
				return 0, err
			}
			if lost = is != limit; !lost { // else the rest of the grant is still its own
				limit = now + window
				if err := cell.replace(limit); err != nil {
					return 0, err
				}
			}
		}
		if now >= limit {
			return 0, errLost
		}
		return m.next(now)
	}, nil
}

// await calls done once in a tick until it returns true or an error.
func await(done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		time.Sleep(mutantTick)
	}
}

var errLost = errors.New("another process has the lease")

// record is a file with a value, which is replaced as a whole. A missing file is zero.
type record[T any] struct{ path string }

func (r record[T]) read() (is T, err error) {
	text, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return is, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	return is, err
}

func (r record[T]) replace(to T) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s.%d", r.path, os.Getpid())
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return err
	}
	return os.Rename(name, r.path)
}
