package main

import (
	"runtime"
	"testing"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/stretchr/testify/assert"
)

func TestInspect(t *testing.T) {
	m := inspect().end()
	assert.Equal(t, runtime.Version(), m.Go)
	assert.Equal(t, runtime.GOMAXPROCS(0), m.Cores)
	assert.NotEmpty(t, m.CPU)
	assert.Contains(t, m.OS, runtime.GOARCH)
	assert.GreaterOrEqual(t, m.Stolen, 0.0)
	assert.LessOrEqual(t, m.Stolen, 100.0)
}

func TestStolen(t *testing.T) {
	before := cpu.TimesStat{User: 100, Idle: 100, Steal: 10}
	assert.InDelta(t, 5, stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 15}), 1e-9)
	assert.Zero(t, stolen(before, before), "no time passed")
	assert.Zero(t, stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 5}), "a counter that went back")
	assert.Zero(t, stolen(cpu.TimesStat{}, cpu.TimesStat{}), "a system that does not tell")
	only := cpu.TimesStat{User: 42687.61, Nice: 19241.28, System: 9791.75, Idle: 41228.03, Iowait: 447.04, Softirq: 556.95, Steal: 6679.02}
	more := only
	more.Steal = 6679.03
	assert.Equal(t, 100.0, stolen(only, more), "no more than all, however it is rounded")
}
