package cases

import (
	"context"
	"time"

	sonyv1 "github.com/sony/sonyflake"
	sonyv2 "github.com/sony/sonyflake/v2"

	"github.com/tickflake/tickflake/bench/results"
)

// Sonyflake calls NextID of sony/sonyflake. The machine number is given, as by default
// it is taken from a private address, which not every machine has. The widths of its
// fields are constants.
func Sonyflake() Case {
	return sony("sony/sonyflake", sonyv1.BitLenSequence, func() (*sonyv1.Sonyflake, error) {
		return sonyv1.New(sonyv1.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	}, func(s *sonyv1.Sonyflake) Loop {
		return func(n int) error {
			for range n {
				if _, err := s.NextID(); err != nil {
					return err
				}
			}
			return nil
		}
	}, (*sonyv1.Sonyflake).NextID)
}

// SonyflakeV2 calls NextID of version 2 of sony/sonyflake in its default layout, with a
// machine number that is given, as in [Sonyflake].
func SonyflakeV2() Case { return sonyV2("sony/sonyflake v2", 8, sonyv2.Settings{}) }

// SonyflakeV2Wide is [SonyflakeV2] with the widest sequence that its settings allow.
func SonyflakeV2Wide() Case {
	c := sonyV2("sony/sonyflake v2, 30-bit sequence", 30, sonyv2.Settings{
		BitsSequence: 30, BitsMachineID: 1, StartTime: time.Now().Add(-time.Hour),
	})
	c.Note, c.Widened = "BitsSequence is 30 and BitsMachineID 1, so there are two machines only, and IDs for 497 days", true
	return c
}

func sonyV2(name string, sequenceBits int, settings sonyv2.Settings) Case {
	settings.MachineID = func() (int, error) { return 1, nil }
	return sony(name, sequenceBits, func() (*sonyv2.Sonyflake, error) { return sonyv2.New(settings) },
		func(s *sonyv2.Sonyflake) Loop {
			return func(n int) error {
				for range n {
					if _, err := s.NextID(); err != nil {
						return err
					}
				}
				return nil
			}
		}, (*sonyv2.Sonyflake).NextID)
}

// sony is a case of a generator of either version, in units of 10 ms.
func sony[G any, Number int64 | uint64](name string, sequenceBits int, open func() (G, error), loop func(G) Loop, next func(G) (Number, error)) Case {
	return Case{Name: name, Group: results.Peers, Bits: 64,
		Limit: Limit{IDs: 1 << sequenceBits, Per: 10 * time.Millisecond},
		Open: func(context.Context) (Source, error) {
			s, err := open()
			if err != nil {
				return Source{}, err
			}
			return Source{
				Loop: func() Loop { return loop(s) },
				Issue: func() (ID, error) {
					id, err := next(s)
					return idOfInt(uint64(id)), err
				},
			}, nil
		},
	}
}
