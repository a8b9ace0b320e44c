package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// inspection is the machine before the run. A fact that the system does not tell is empty.
type inspection struct {
	results.Machine
	before cpu.TimesStat
}

// inspect looks at the machine.
func inspect() inspection {
	m := inspection{Machine: results.Machine{
		Cores: runtime.GOMAXPROCS(0),
		OS:    runtime.GOOS + " (" + runtime.GOARCH + ")",
		Go:    runtime.Version(),
		CPU:   "unknown processor",
	}}
	if all, err := cpu.Info(); err == nil && len(all) > 0 && all[0].ModelName != "" {
		m.CPU = strings.Join(strings.Fields(all[0].ModelName), " ")
	}
	if memory, err := mem.VirtualMemory(); err == nil {
		m.MemoryBytes = memory.Total
	}
	if h, err := host.Info(); err == nil {
		m.OS = fmt.Sprintf("%s %s (%s)", h.Platform, h.PlatformVersion, runtime.GOARCH)
		m.Kernel = h.KernelVersion
		if h.VirtualizationRole == "guest" {
			m.Virtual = h.VirtualizationSystem
		}
	}
	if l, err := load.Avg(); err == nil {
		m.LoadBefore = l.Load1
	}
	// Of Linux; other systems do not tell.
	if source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		m.ClockSource = strings.TrimSpace(string(source))
	}
	m.before = measure.Times()
	return m
}

// end returns the machine with the time that was stolen since [inspect].
func (m inspection) end() results.Machine {
	m.Stolen = measure.Stolen(m.before, measure.Times())
	return m.Machine
}
