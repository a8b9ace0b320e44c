package scale

import (
	"math"
	"math/rand/v2"
	"time"
)

// The model of a store. All times are in nanoseconds from the start of the run.
const (
	way     = int64(500 * time.Microsecond) // of a request to the store, and of the answer back at least
	tail    = float64(2 * time.Millisecond) // the mean of what the answer takes more: exponential
	timeout = int64(2 * time.Second)        // of the sender
	perList = 256                           // so many cells of a list cost as much as one operation
)

// store serves operations one after the other, in the order of their arrival. It knows when
// it answers, not what: cells are kept elsewhere.
type store struct {
	rng   *rand.Rand
	each  int64 // the time that one operation takes
	free  int64 // when the store has served all that has arrived
	away  []outage
	meter meter
}

// outage is a time in which the store serves nothing. If it hangs, nothing is answered; else
// requests are refused at once.
type outage struct {
	from, to int64
	hangs    bool
}

func newStore(seed uint64, capacity int64, clients int, away []outage) *store {
	return &store{
		rng: rand.New(rand.NewPCG(seed, 0x7363616c65)), each: int64(time.Second) / capacity, away: away,
		meter: newMeter(clients, away),
	}
}

// admit takes a request that is sent now. If it is served, it takes effect now as far as
// others can see, since all requests take the same way there, and is answered at back. An
// answer later than the timeout is lost. A request whose sender gives up before its turn is
// dropped, and costs nothing. cells is how many cells it lists.
func (s *store) admit(now int64, cells int64) (back int64, served bool) {
	arrival := now + way
	begin := max(arrival, s.free)
	for _, o := range s.away {
		if arrival < o.to && begin+s.each > o.from {
			if !o.hangs && arrival >= o.from {
				return arrival + way, false
			}
			return now + timeout, false
		}
	}
	if begin-now >= timeout {
		return now + timeout, false
	}
	s.free = begin + s.each*max((cells+perList-1)/perList, 1)
	return s.free + way + int64(-tail*math.Log(1-s.rng.Float64())), true
}

// meter counts what a fleet does to a store.
type meter struct {
	away     []outage
	second   []int32 // writes in each second
	claimed  []int32 // per process, the round trips of its last claim, or 0
	lastIn   []int64 // per outage, when the last process had its first answered write after it
	cameBack []int   // per outage, how many processes have come back from it
	back     []uint8 // per process, how many outages it has come back from
	joined   int64   // when the last process had its claim
}

func newMeter(clients int, away []outage) meter {
	return meter{away: away, claimed: make([]int32, clients), back: make([]uint8, clients), lastIn: make([]int64, len(away)), cameBack: make([]int, len(away))}
}

// wrote counts a write of a process that landed, and was answered at back.
func (m *meter) wrote(client int, now, back int64) {
	at := int((now + way) / int64(time.Second))
	for len(m.second) <= at {
		m.second = append(m.second, 0)
	}
	m.second[at]++
	for i := len(m.away) - 1; i >= 0; i-- {
		if now >= m.away[i].to {
			if int(m.back[client]) <= i {
				m.back[client] = uint8(i + 1)
				m.lastIn[i] = max(m.lastIn[i], back)
				m.cameBack[i]++
			}
			break
		}
	}
}

// claim counts a claim of a process that was acknowledged.
func (m *meter) claim(client int, back int64, trips int32) {
	m.claimed[client] = trips
	m.joined = max(m.joined, back)
}

// rate is the mean number of writes per second, and peak the largest number in one second.
func (m *meter) rate(from, to int64) (mean, peak float64) {
	a, b := int(from/int64(time.Second)), int(to/int64(time.Second))
	for i := a; i < min(b, len(m.second)); i++ {
		mean += float64(m.second[i])
		peak = max(peak, float64(m.second[i]))
	}
	return mean / float64(b-a), peak
}
