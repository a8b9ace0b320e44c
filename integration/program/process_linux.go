package program

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dieWithUs makes the system kill a process when we are killed, as by go test's timeout.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// descendants returns the ids of the children of a process, and of their
// descendants. Kernels tell them from Linux 4.2 on.
func descendants(pid int) (found []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // without them, none are found
	for _, path := range threads {
		children, _ := os.ReadFile(path)
		for text := range strings.FieldsSeq(string(children)) {
			child, _ := strconv.Atoi(text) // it is a number
			found = append(append(found, child), descendants(child)...)
		}
	}
	return found
}

// status returns the state of a process or thread, or "" if it has ended.
func status(path string) string {
	stat, _ := os.ReadFile(path)
	// The name, in brackets, may hold anything. Then follows the state.
	_, rest, _ := strings.Cut(string(stat[max(strings.LastIndexByte(string(stat), ')'), 0):]), " ")
	return rest[:min(len(rest), 1)]
}

// awaitStop returns when all threads of a process that got SIGSTOP have stopped. Until then,
// which takes longer on a busy machine, they may still answer.
func awaitStop(pid int) {
	for range 5000 {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(threads, func(path string) bool {
			state := status(path)
			return state != "" && !strings.Contains("TtZX", state)
		}) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
