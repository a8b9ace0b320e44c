package snowflake

// Run is a number of IDs of one node and one tick, each Stride above the one before. It
// takes a few bytes whatever its length, so a service sends runs rather than IDs.
type Run struct {
	First  ID
	Count  int64 // at least 1
	Stride int64 // 1, or 2^NodeBits where the node number stands last in the layout
}

// At returns the ID at index i of the run, from 0 to Count-1.
func (r Run) At(i int64) ID { return r.First + ID(i*r.Stride) }

// Last returns the run's last and largest ID.
func (r Run) Last() ID { return r.At(r.Count - 1) }
