package chaos_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// The mutants are the bugs of known generators. Each must be caught by the expected
// scenario, with the damage that its users had.
func TestMutantsAreCaught(t *testing.T) {
	tenMs := generatortest.Claim{Exhausted: waits.Exhausted, Behind: generatortest.Bound{Wait: 10 * time.Millisecond}}
	for _, m := range []struct {
		name  string
		start func(*clocktest.Virtual, *state) issuer
		claim generatortest.Claim
		fault string
		kind  generatortest.Kind
	}{
		{"M1 sequence reset before the backwards check", newM1, waits, "F5", generatortest.Duplicate},
		{"M2 last timestamp kept after the fact", newM2, waits, "F12", generatortest.Duplicate},
		{"M3 tolerance in which the counter wraps", newM3, tenMs, "F1", generatortest.Duplicate},
		{"M4 only now == last is looked at", newM4, waits, "F1", generatortest.Duplicate},
		{"M5 lease checked before use, not at use", newM5, waits, "F13", generatortest.Duplicate},
		{"M6 sequence read, changed and written without a lock", newM6, waits, "F16", generatortest.Duplicate},
		{"M7 one reserved number per step back", newM7, tenMs, "F5", generatortest.Duplicate},
		{"M8 sleeps for the whole step", newM8, tenMs, "F2", generatortest.Stall},
	} {
		t.Run(m.name[:2], func(t *testing.T) {
			caught := map[string]bool{}
			for _, r := range generatortest.Run(mutantSubject(m.name, m.claim, m.start)).Results {
				for _, v := range r.Violations {
					caught[r.Fault+" "+string(v.Kind)] = true
				}
				if r.Duplicates > 0 {
					caught[r.Fault+" "+string(generatortest.Duplicate)] = true
				}
			}
			all := slices.Sorted(maps.Keys(caught))
			assert.Contains(t, all, m.fault+" "+string(m.kind), m.name)
			t.Logf("%s: caught by %s as %s; in all by %s", m.name, m.fault, m.kind, strings.Join(all, ", "))
		})
	}
}

// m1 is twitter-archive/snowflake issue 6: a call that fails has reset the
// sequence, and the clock comes back to the same millisecond.
type m1 struct{ control }

func newM1(clock *clocktest.Virtual, kept *state) issuer {
	return &m1{control{clock: clock, kept: kept}}
}

func (m *m1) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ms()
	if now == m.last {
		if m.seq = (m.seq + 1) & mutantMask; m.seq == 0 {
			now = m.after(m.last)
		}
	} else {
		m.seq = 0
	}
	if now < m.last {
		return 0, behind(m.last - now)
	}
	m.last = now
	return now<<mutantBits | m.seq, nil
}

// m2 is Meituan-Dianping/Leaf issue 216: IDs issued since the last report can be issued
// again.
type m2 struct {
	control
	reported int64
}

func newM2(clock *clocktest.Virtual, kept *state) issuer {
	m := &m2{control: control{clock: clock, kept: kept}}
	m.last = kept.limit
	return m
}

func (m *m2) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ms()
	if now < m.last {
		return 0, behind(m.last - now)
	}
	seq := int64(0)
	if now == m.last {
		if seq = (m.seq + 1) & mutantMask; seq == 0 {
			now = m.after(m.last)
		}
	}
	m.last, m.seq = now, seq
	if now-m.reported >= 3000 {
		m.reported, m.kept.limit = now, now
	}
	return now<<mutantBits | seq, nil
}

// m3 is f4b6a3/tsid-creator pull request 24: within a tolerance the last time is
// kept, and the counter wraps within it.
type m3 struct{ control }

func newM3(clock *clocktest.Virtual, kept *state) issuer {
	return &m3{control{clock: clock, kept: kept}}
}

func (m *m3) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ms()
	switch {
	case now < m.last-10:
		return 0, behind(m.last - now)
	case now < m.last:
		now = m.last
		m.seq = (m.seq + 1) & mutantMask
	case now == m.last:
		if m.seq = (m.seq + 1) & mutantMask; m.seq == 0 {
			now = m.after(m.last)
		}
	default:
		m.seq = 0
	}
	m.last = now
	return now<<mutantBits | m.seq, nil
}

// m4 is bwmarrin/snowflake issue 20, on a raw wall clock.
type m4 struct{ control }

func newM4(clock *clocktest.Virtual, kept *state) issuer {
	return &m4{control{clock: clock, kept: kept}}
}

func (m *m4) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ms()
	if now == m.last {
		if m.seq = (m.seq + 1) & mutantMask; m.seq == 0 {
			now = m.after(m.last)
		}
	} else {
		m.seq = 0
	}
	m.last = now
	return now<<mutantBits | m.seq, nil
}

// m5 checks that its lease of 5 s is valid, and uses it later.
type m5 struct {
	control
	lease *fiveSeconds
}

type fiveSeconds struct {
	mu     sync.Mutex
	holder *m5
	end    int64
}

var leases sync.Map // of states: *state to *fiveSeconds

func newM5(clock *clocktest.Virtual, kept *state) issuer {
	l, _ := leases.LoadOrStore(kept, &fiveSeconds{})
	return &m5{control: control{clock: clock, kept: kept}, lease: l.(*fiveSeconds)}
}

func (m *m5) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held(m.ms()) {
		return 0, errLost
	}
	now := m.ms()
	if now < m.last {
		return 0, behind(m.last - now)
	}
	seq := int64(0)
	if now == m.last {
		if seq = (m.seq + 1) & mutantMask; seq == 0 {
			now = m.after(m.last)
		}
	}
	m.last, m.seq = now, seq
	return now<<mutantBits | seq, nil
}

// held takes the lease if it is free, or extends its own.
func (m *m5) held(now int64) bool {
	m.lease.mu.Lock()
	defer m.lease.mu.Unlock()
	if m.lease.holder != m && now < m.lease.end {
		return false
	}
	m.lease.holder, m.lease.end = m, now+5000
	return true
}

// m6 has no lock. Its word is read, changed and written with the clock read in
// between.
type m6 struct {
	control
	word atomic.Int64 // last<<mutantBits | seq
}

func newM6(clock *clocktest.Virtual, kept *state) issuer {
	return &m6{control: control{clock: clock, kept: kept}}
}

func (m *m6) Next() (int64, error) {
	word := m.word.Load()
	now := m.ms()
	next := max(word+1, now<<mutantBits)
	if next>>mutantBits > now {
		now = m.after(word >> mutantBits)
		next = now << mutantBits
	}
	m.word.Store(next)
	return next, nil
}

// m7 is yitter/IdGenerator's index of step backs: while the clock is behind, it
// issues the past once more, with one of four reserved numbers.
type m7 struct {
	control
	back, index int64
}

func newM7(clock *clocktest.Virtual, kept *state) issuer {
	return &m7{control: control{clock: clock, kept: kept}}
}

func (m *m7) Next() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ms()
	if now < m.last {
		if m.back == 0 {
			m.back = m.last
			m.index = m.index%4 + 1
		}
		m.back--
		return m.back<<mutantBits | m.index, nil
	}
	m.back = 0
	seq := int64(5) // 0 to 4 are reserved
	if now == m.last {
		if seq = m.seq + 1; seq > mutantMask {
			now, seq = m.after(m.last), 5
		}
	}
	m.last, m.seq = now, seq
	return now<<mutantBits | seq, nil
}

// m8 is sony/sonyflake issue 39: it sleeps until the clock has caught up, without a
// bound.
type m8 struct{ *control }

func newM8(clock *clocktest.Virtual, kept *state) issuer { return &m8{newControl(clock, kept)} }

func (m *m8) Next() (int64, error) {
	m.mu.Lock()
	lead := m.last - m.ms()
	m.mu.Unlock()
	if lead > 0 {
		m.clock.Sleep(time.Duration(lead) * time.Millisecond)
	}
	return m.control.Next()
}
