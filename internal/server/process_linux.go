package server

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dieWithUs makes the system kill a process when we are killed, as by go test's timeout.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// descendants returns the ids of the children of a process, and of their
// descendants.
func descendants(pid int) []int {
	parents := make(map[int][]int)
	entries, _ := os.ReadDir("/proc") // without it, none are found
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in brackets, may hold anything. Then follow the state and the parent.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			parents[parent] = append(parents[parent], child)
		}
	}
	found := parents[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, parents[found[i]]...)
	}
	return found
}
