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
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, true // no file can be opened at the moment, so the next look tells
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
