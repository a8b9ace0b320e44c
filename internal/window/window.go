// Package window holds the grant of a process, a range of ticks or of counted numbers, and
// the one word that hands out its slots. It connects the keeper, which puts ranges
// in, and the issuer, which takes slots out: neither calls the other.
//
// You need these names:
//
//   - [Ticks]: the window of a node number. Its issuer takes slots by [Ticks.Span] and
//     [Span.Take], and learns by [Ticks.Front] why that failed; its keeper calls [Ticks.Grant].
//   - [Numbers]: the window of counted numbers. Its issuer calls [Numbers.Quick] and
//     [Numbers.Count], and its keeper [Numbers.Queue] and [Numbers.Short].
//   - Used, Revoke, Seal and SetMark, which both have.
//
// A slot is tick<<bits | sequence, or a counted number. Both windows hand out the slots of one range at a time, by
// a word that belongs to that range alone (see word.go). A change to another range seals the word first, and then opens
// that of the next range above all slots that were taken.
package window

// Range is the permission to take slots of a node number in the ticks [From, To), or the
// counted numbers [From, To). The keeper promises that no other process has the range, now or
// ever.
type Range struct {
	Node     int64
	From, To uint64
}

// Extends reports whether r goes on where the range before ends, or overlaps it: the two are one.
func (r Range) Extends(before Range) bool {
	return r.Node == before.Node && before.To > 0 && r.From <= before.To
}
