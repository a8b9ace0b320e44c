package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/tickflake/tickflake/internal/rig/servers"
)

// child is the server, in a process of its own.
type child struct {
	addresses
	cmd   *exec.Cmd
	dir   string
	stdin io.WriteCloser
	lines *bufio.Scanner
	said  bytes.Buffer // on its standard error; read it when the process has ended

	mu sync.Mutex // one command at a time
}

// patience is how long the child may take to end when it is asked to.
const patience = 10 * time.Second

// startChild starts this program again as the server. The caller stops it.
func startChild(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := servers.Dir()
	if err != nil {
		return nil, err
	}
	c := &child{dir: dir, cmd: exec.CommandContext(ctx, self)}
	c.cmd.Env = append(os.Environ(), askedFor+"="+dir)
	c.cmd.Stderr, c.cmd.WaitDelay = &c.said, time.Second
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.stdin, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.lines = bufio.NewScanner(out)
	if err := c.read(&c.addresses); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// read reads an answer of the child.
func (c *child) read(into any) error {
	if !c.lines.Scan() {
		return errors.Join(errors.New("the server's process has ended"), c.lines.Err())
	}
	if err := json.Unmarshal(c.lines.Bytes(), into); err != nil {
		return fmt.Errorf("the server's process says %q: %w", c.lines.Text(), err)
	}
	return nil
}

// ask sends a command, and returns the answer.
func (c *child) ask(command string) (u usage, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.stdin, command+"\n"); err != nil {
		return u, err
	}
	return u, c.read(&u)
}

// cpu returns the processor time that the server has used.
func (c *child) cpu(context.Context) (time.Duration, error) {
	u, err := c.ask(askCPU)
	if err == nil && !u.Told {
		err = errUntold
	}
	return time.Duration(u.CPU), err
}

// errUntold is the error of a system that does not tell processor time.
var errUntold = errors.New("the system does not tell processor time")

// resident returns the server's memory as the system counts it.
func (c *child) resident() (uint64, error) {
	p, err := process.NewProcess(int32(c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	m, err := p.MemoryInfo()
	if err != nil {
		return 0, err
	}
	return m.RSS, nil
}

// stop ends the server, and removes its data.
func (c *child) stop() error {
	_ = c.stdin.Close() // the process ends by that, or has ended
	timer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	err := c.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("the server's process: %w: %s", err, strings.Join(strings.Fields(c.said.String()), " "))
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
