package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// living is what kill(2) takes to reach all processes below this one that live: those of a group that has none but these
// are one, so that none escapes by a fork. After the end of CMD more says that there are others, which forked meanwhile.
// It also waits for the orphans that have ended.
func living(cmd int, group, runs bool) (all []int, more bool) {
	type process struct {
		pid, group, session int
		ended               bool
	}
	own, children := os.Getpid(), make(map[int][]process)
	self, _ := os.Readlink("/proc/self")
	proc, err := os.Open("/proc")
	if err != nil || self != strconv.Itoa(own) { // there is none, or it is that of other processes
		return livingGroup(cmd, group, runs), false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat") // it may have ended
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 18 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		g, _ := strconv.Atoi(string(fields[2]))
		session, _ := strconv.Atoi(string(fields[3]))
		// The first thread of a process may have ended before the others.
		ended := fields[0][0] == 'Z' && string(fields[17]) <= "1" || fields[0][0] == 'X'
		children[parent] = append(children[parent], process{pid, g, session, ended})
	}
	ours, _ := unix.Getsid(0)
	groups := make(map[int]bool)
	var below func(int)
	below = func(parent int) {
		for _, p := range children[parent] {
			switch {
			case p.ended && parent == own && p.pid != cmd:
				_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
			case p.ended:
			case p.session != ours || group && p.group == cmd:
				groups[p.group] = true
			default:
				all = append(all, p.pid)
			}
			below(p.pid)
		}
	}
	below(own)
	for g := range groups {
		all = append(all, -g)
	}
	// Only the kernel knows: one that forks and ends again and again is never where /proc is read. What loses its
	// parent is a child of this process.
	more = !runs && len(all) == 0 && unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
	return all, more
}

// livingGroup is what kill(2) takes to reach the processes of CMD, where nobody can tell more: its group, or itself.
func livingGroup(cmd int, group, runs bool) []int {
	if group {
		for pid := 1; !runs && pid > 0; { // those that have ended below process 1 of a container
			pid, _ = syscall.Wait4(-cmd, nil, syscall.WNOHANG, nil)
		}
		cmd, runs = -cmd, syscall.Kill(-cmd, 0) == nil
	}
	if !runs {
		return nil
	}
	return []int{cmd}
}
