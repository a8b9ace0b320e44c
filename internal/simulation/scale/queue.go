package main

import (
	"cmp"
	"slices"
)

// event is a time at which a process has something to do.
type event struct {
	at     int64
	who    int32
	serial uint32 // of the process: an event with an old serial is void
}

// queue has events in the order of their times. Those of the near future stand in a ring of
// buckets, since a heap of millions is slow.
type queue struct {
	width  int64 // of a bucket
	ring   [][]event
	later  []event // beyond the ring
	now    int64   // the index of the current bucket
	bucket []event // the rest of the current bucket, in order
	n      int
}

const buckets = 1 << 15

func newQueue(width int64) *queue {
	return &queue{width: width, ring: make([][]event, buckets)}
}

func order(a, b event) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.who, b.who), cmp.Compare(a.serial, b.serial))
}

func (q *queue) push(e event) {
	q.n++
	switch i := e.at / q.width; {
	case i <= q.now:
		at, _ := slices.BinarySearchFunc(q.bucket, e, order)
		q.bucket = slices.Insert(q.bucket, at, e)
	case i < q.now+buckets:
		q.ring[i%buckets] = append(q.ring[i%buckets], e)
	default:
		q.later = append(q.later, e)
	}
}

// pop returns the next event, or false if there is none.
func (q *queue) pop() (e event, ok bool) {
	if q.n == 0 {
		return event{}, false
	}
	for len(q.bucket) == 0 {
		q.now++
		if q.now%(buckets/2) == 0 {
			later := q.later
			q.later = nil
			q.n -= len(later)
			for _, e := range later {
				q.push(e)
			}
		}
		q.bucket = q.ring[q.now%buckets]
		q.ring[q.now%buckets] = nil
		slices.SortFunc(q.bucket, order)
	}
	e = q.bucket[0]
	q.bucket = q.bucket[1:]
	q.n--
	return e, true
}
