//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const leaseExecHelp = `Claim a node number, run CMD with it, and extend the grant until CMD ends. So a
program with a Snowflake library of its own, in any language, gets a number that no
other has. docs/exec.md says what that promises, and what CMD must do.

CMD finds in its environment

  LEASE_NODE        the node number; --env gives it a second name
  LEASE_DATACENTER  and LEASE_WORKER: the same in parts, if the layout names parts,
                    here those of the layout twitter
  LEASE_FLOOR_TIME  the first instant that CMD may issue an ID of (RFC 3339),
  LEASE_FLOOR_MS    the same in milliseconds since 1970,
  LEASE_FLOOR_ID    and the smallest ID
  LEASE_FENCE       a number that grows with every CMD that has this node number

CMD starts when the floor is reached: if the last CMD with --node ended a moment ago,
that can take a window. Signals go to CMD and the processes that it has started. When
a quarter of the window is left, since the store is away or another process took the
number, CMD gets SIGTERM, and before the grant ends SIGKILL. On Linux CMD is killed
if tickflake is. The number is released when CMD has ended.

Exit codes: that of CMD, or 128 plus the number of the signal that ended it; 75 if
the grant could not be extended; 126 if CMD cannot be run, and 127 if there is none;
1 and 2 before CMD runs, as for all commands.`

// The exit codes of lease exec that are not CMD's.
const (
	exitNotExtended = 75 // EX_TEMPFAIL of sysexits.h: start it again
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignaled    = 128
)

// execution is the command lease exec, with its flags.
type execution struct {
	*command.Console
	*claiming
	variable string // a second name of LEASE_NODE, or empty
}

// addExec adds the command lease exec, where there are signals and groups of processes.
func addExec(to *cobra.Command, c *command.Console) {
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD [ARG...]",
		Short: "Run a program with a node number of its own",
		Long:  leaseExecHelp,
		Example: `  tickflake lease exec --store etcd://10.0.0.1:2379 -- java -jar orders.jar
  tickflake lease exec --node 7 --env WORKER_ID -- python3 orders.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("want a program to run, such as in: tickflake lease exec -- python3 orders.py")
			}
			return nil
		},
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().SetInterspersed(false) // flags after CMD are its own
	e := &execution{Console: c, claiming: newClaiming(cmd)}
	command.Flag(cmd, "env", "`NAME` of a variable that has the node number as well", &e.variable, func(name string) (string, error) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || strings.HasPrefix(name, "TICKFLAKE_") {
			return "", fmt.Errorf("want letters, digits and _, and no setting of tickflake, got %q", name)
		}
		return name, nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args) }
	to.AddCommand(cmd)
}

// wallClock is the clock of CMD. The time of a step counts at once, so the grant ends when it does for CMD.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now().Round(0) }

func (e *execution) run(ctx context.Context, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		e.Complain(err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return cli.Exit(exitNotFound)
		}
		return cli.Exit(exitCannotRun)
	}
	signals := make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) { // as a shell has its background jobs do, and nohup
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if err := e.awaitClock(ctx, logger(e.Err)); err != nil {
		return err
	}
	held, store, err := e.hold(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	defer func() {
		// A signal has ended the context of the command and must not prevent the release.
		ctx, cancel := e.within(context.Background())
		defer cancel()
		_ = held.keeper.CloseContext(ctx) // it logs its error
	}()
	cmd := &exec.Cmd{Path: path, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if cmd.Env, err = held.environment(e.variable); err != nil {
		return err
	}
	return e.supervise(cmd, held, signals)
}

// held is a node number for CMD. CMD keeps it to its end: if it is lost, another one that the keeper then
// claims is of no use.
type held struct {
	keeper       *lease.Keeper
	node         int64
	floor, limit time.Time
}

// hold claims a number, and waits until its grant begins.
func (e *execution) hold(whole context.Context) (h *held, store stores.Store, err error) {
	ctx, cancel := e.within(whole)
	defer cancel()
	defer func() { err = e.ended(whole, ctx, err) }()
	keeper, store, err := e.keeper(ctx, logger(e.Err), lease.WithClock(wallClock{}), lease.WithWholeGrant())
	if err != nil {
		return nil, nil, err
	}
	h = &held{keeper: keeper, node: keeper.Node()}
	h.floor, h.limit = keeper.Granted()
	for ahead := time.Until(h.floor); ahead > 0; ahead = time.Until(h.floor) {
		select {
		case <-time.After(ahead):
			continue
		case <-ctx.Done():
			err = fmt.Errorf("node number %d begins at %s: its last grant goes up to there; wait with a longer --timeout, or leave out --node", h.node, h.floor.UTC().Format(time.RFC3339Nano))
		}
		_ = keeper.Close()
		_ = store.Close()
		return nil, nil, err
	}
	return h, store, nil
}

// environment is that of this process, and what CMD is to know.
func (h *held) environment(variable string) ([]string, error) {
	layout := h.keeper.Layout()
	lowest, err := layout.Compose(h.floor, h.node, 0)
	if err != nil {
		return nil, err
	}
	d, err := layout.Decode(lowest)
	if err != nil {
		return nil, err
	}
	env := os.Environ()
	set := func(name string, value any) { env = append(env, fmt.Sprintf("%s=%v", name, value)) }
	set("LEASE_NODE", h.node)
	for name, part := range d.Parts {
		set("LEASE_"+strings.ToUpper(name), part)
	}
	set("LEASE_FLOOR_TIME", h.floor.UTC().Format(time.RFC3339Nano))
	set("LEASE_FLOOR_MS", h.floor.Add(time.Millisecond-1).UnixMilli())
	set("LEASE_FLOOR_ID", lowest)
	set("LEASE_FENCE", fence(layout, h.floor))
	if variable != "" {
		set(variable, h.node)
	}
	return env, nil
}

// fence is the tick of the floor. Each grant that was released here or has expired ended above its floor, and the
// next one begins there.
func fence(layout snowflake.Layout, floor time.Time) int64 {
	return int64(floor.Sub(layout.Epoch) / layout.Tick)
}

// supervise runs CMD until it ends, or must.
func (e *execution) supervise(cmd *exec.Cmd, h *held, signals <-chan os.Signal) error {
	// On a terminal CMD stays in our group, or it could not read. Ctrl-C then reaches it without us.
	group := !command.IsTerminal(e.In)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	dieWithParent(cmd.SysProcAttr)
	runtime.LockOSThread() // CMD dies with the thread that starts it
	defer runtime.UnlockOSThread()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // what we ignore, CMD would ignore
	if err := cmd.Start(); err != nil {
		e.Complain(err)
		return cli.Exit(exitCannotRun)
	}
	send := func(s syscall.Signal) {
		pid := cmd.Process.Pid
		if group {
			pid = -pid
		}
		_ = syscall.Kill(pid, s) // it may have ended
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says more
		if group {
			send(syscall.SIGKILL) // what it has left: the number is released
		}
		close(ended)
	}()
	window := h.keeper.Stats().Window
	told, killed := false, false
	said := make(chan struct{})
	for {
		left, why := h.left()
		if left <= window/4 && !told {
			told = true
			send(syscall.SIGTERM)
			complaint := fmt.Errorf("node number %d is granted until %s and was not extended: %w; the program is ended", h.node, h.limit.UTC().Format(time.RFC3339Nano), why)
			go func() { // standard error may be a pipe that is full, and SIGKILL must not wait for its reader
				defer close(said)
				e.Complain(complaint)
			}()
		}
		if left <= window/12 && !killed {
			killed = true
			send(syscall.SIGKILL)
		}
		select {
		case s := <-signals:
			if s := s.(syscall.Signal); group || s != syscall.SIGINT && s != syscall.SIGQUIT {
				send(s)
			}
		case <-time.After(min(window/60, 250*time.Millisecond)):
		case <-ended:
			if told {
				select {
				case <-said:
				case <-time.After(time.Second):
				}
				return cli.Exit(exitNotExtended)
			}
			return exitOf(cmd.ProcessState)
		}
	}
}

// left is how much longer CMD may run, and why it is not longer.
func (h *held) left() (time.Duration, error) {
	floor, limit := h.keeper.Granted()
	if floor.Equal(h.floor) && h.keeper.Node() == h.node { // in this order: if the number changes in between, it shows
		h.limit = limit
	}
	err := h.keeper.Err()
	switch { // another process may have the number
	case h.keeper.Stats().Copies > 0:
		return 0, errCopied
	case errors.Is(err, stores.ErrWentBack):
		return 0, err
	}
	return time.Until(h.limit), cmp.Or(err, errLate)
}

var (
	errLate   = errors.New("another process took it, or this process or its store came too late")
	errCopied = errors.New("this machine's memory is a copy, and its original has the number")
)

// exitOf is the end of a program as a shell reports it.
func exitOf(state *os.ProcessState) error {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.Exit(exitSignaled + int(status.Signal()))
	}
	if code := state.ExitCode(); code != 0 {
		return cli.Exit(code)
	}
	return nil
}

// passedOn are the signals that CMD gets from us.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
