package cases

import (
	"context"
	"time"

	"github.com/sony/sonyflake"

	"github.com/tickflake/tickflake/bench/results"
)

// Sonyflake calls NextID of sony/sonyflake, whose unit of time is 10 ms. The machine
// number is given, as by default it is taken from a private address, which not every
// machine has. The widths of its fields are constants.
func Sonyflake() Case {
	return Case{Name: "sony/sonyflake", Group: results.Peers, Bits: 64,
		Limit: Limit{IDs: 1 << sonyflake.BitLenSequence, Per: 10 * time.Millisecond},
		Open: func(context.Context) (Source, error) {
			s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
			if err != nil {
				return Source{}, err
			}
			return Source{
				Loop: func() Loop {
					return func(n int) error {
						for range n {
							if _, err := s.NextID(); err != nil {
								return err
							}
						}
						return nil
					}
				},
				Issue: func() (ID, error) {
					id, err := s.NextID()
					return idOfInt(id), err
				},
			}, nil
		},
	}
}
