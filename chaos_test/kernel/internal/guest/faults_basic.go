//go:build linux

package guest

import "time"

func basicFaults() []Fault {
	return []Fault{
		{Name: "none", About: "nothing happens: the bench itself", Kind: "clock", Calm: true, Run: func(s *Stage) { s.Issue(time.Second) }},
	}
}
