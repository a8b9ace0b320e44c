//go:build linux

package guest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// carrier is a process in which one subject or many run.
type carrier struct {
	pid    int
	killed atomic.Bool // from here
	ended  chan struct{}
	err    error // how it ended; set before ended is closed
}

// child is a subject in a carrier, and the other ends of its pipes.
type child struct {
	*carrier
	in, out, log *os.File
}

func (c *child) command(line string) error {
	_ = c.in.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// signal sends a signal to the process and its children. They may have ended.
func (c *carrier) signal(n syscall.Signal) {
	if n == syscall.SIGKILL {
		c.killed.Store(true)
	}
	_ = syscall.Kill(-c.pid, n)
}

// wait returns when the process has ended, and tells its subjects if it crashed.
func (c *carrier) wait(cmd *exec.Cmd, runners []*runner) {
	c.err = cmd.Wait()
	var exit *exec.ExitError
	if !c.killed.Load() && errors.As(c.err, &exit) && exit.ExitCode() != 1 { // 1 is that of subject.Serve
		for _, r := range runners {
			r.mu.Lock()
			r.crashed = c.err.Error()
			r.mu.Unlock()
		}
	}
	close(c.ended)
}

// end kills a process that has no reader.
func (c *child) end() {
	c.signal(syscall.SIGKILL)
	<-c.ended
	_, _, _ = c.in.Close(), c.out.Close(), c.log.Close()
}

// spawn starts one process for all of the runners, or for the one that is a program. If
// wait is set, its subjects wait for subject.Go before they make their generators.
func spawn(runners []*runner, wait bool) (all []*child, err error) {
	cmd := exec.Command("/proc/self/exe")
	var places []subject.Place
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, c := range all {
				_, _, _ = c.in.Close(), c.out.Close(), c.log.Close()
			}
		}
	}()
	process := &carrier{ended: make(chan struct{})}
	for _, r := range runners {
		c := &child{carrier: process}
		var stdin, stdout, stderr *os.File
		for _, p := range []struct{ read, write **os.File }{{&stdin, &c.in}, {&c.out, &stdout}, {&c.log, &stderr}} {
			if *p.read, *p.write, err = os.Pipe(); err != nil {
				return all, err
			}
		}
		all, theirs = append(all, c), append(theirs, stdin, stdout, stderr)
		places = append(places, subject.Place{Subject: r.name, Dir: r.dir, Store: r.store, Window: r.stage.window, Wait: wait})
		if r.name == Program {
			cmd = exec.Command(r.argv[0], r.argv[1:]...)
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.dir, stdin, stdout, stderr
		}
	}
	if cmd.Stdin == nil {
		text, err := json.Marshal(places)
		if err != nil {
			return all, err
		}
		cmd.Env = append(os.Environ(), subjectsEnv+"="+string(text))
		cmd.ExtraFiles, cmd.Stderr = theirs, os.Stderr // a panic goes to the console
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err = cmd.Start(); err != nil {
		return all, err
	}
	process.pid = cmd.Process.Pid
	go process.wait(cmd, runners) // ends with the process, which its stage kills
	return all, nil
}
