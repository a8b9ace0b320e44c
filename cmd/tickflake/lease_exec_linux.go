package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the program when the thread ends that started it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes the processes below this one that lose their parent children of this one, so that living finds them.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // since Linux 3.4

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

// clockSteps receives when the wall clock was set, or the machine has slept, until stop. Without it, the next look
// finds it.
func clockSteps() (steps <-chan struct{}, stop func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}
	timer, set := os.NewFile(uintptr(fd), "timer"), make(chan struct{}, 1)
	go func() { // ends with the timer
		for {
			far := unix.ItimerSpec{Value: unix.NsecToTimespec(time.Now().AddDate(1, 0, 0).UnixNano())}
			if unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &far, nil) != nil {
				return
			}
			if _, err := timer.Read(make([]byte, 8)); err != nil && !errors.Is(err, unix.ECANCELED) {
				return
			}
			select {
			case set <- struct{}{}:
			default:
			}
		}
	}()
	return set, func() { _ = timer.Close() }
}

// slept is how long this machine has slept since its boot.
func slept() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
