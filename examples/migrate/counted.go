package migrate

import "github.com/tickflake/tickflake/sequence"

// FromTinyid returns the definition of the numbers from first to last that a row of
// tiny_id_info with this delta and remainder has.
func FromTinyid(first, last, delta, remainder int64) sequence.Definition {
	first += ((remainder-first)%delta + delta) % delta // the first one with this remainder
	return sequence.Definition{Start: first, Max: last, Stride: sequence.Every(delta, 0)}
}
