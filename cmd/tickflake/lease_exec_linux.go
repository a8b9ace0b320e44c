package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
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
other has. docs/exec.md says what that promises, and what CMD must do: one process
of CMD counts. Workers of gunicorn and the like need one lease exec each.

CMD finds in its environment

  LEASE_NODE        the node number; --env gives it a second name
  LEASE_DATACENTER  and LEASE_WORKER: the same in parts, if the layout names parts,
                    here those of the layout twitter
  LEASE_FLOOR_TIME  the first instant that CMD may issue an ID of (RFC 3339),
  LEASE_FLOOR_MS    the same in milliseconds since 1970,
  LEASE_FLOOR_ID    and the smallest ID
  LEASE_FENCE       a number that grows with every CMD that has this node number

CMD starts when the floor is reached: if the last CMD with --node ended a moment ago,
that can take a window. A start that waits in vain leaves the floor where it was.

Signals go to CMD and the processes in its group; on a terminal to CMD alone. When a
quarter of the window is left, all that CMD has started gets SIGTERM, and before the
grant ends SIGKILL. What is left when CMD ends gets them too; then the number is
released. It needs Linux.

Exit codes: that of CMD, or 128 plus the number of the signal that ended it; 75 if
the grant could not be extended, or ended by a step of the clock or a sleep; 126 if
CMD cannot be run, and 127 if there is none; 1 and 2 before CMD runs, as for all
commands.`

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

// addExec adds the command lease exec.
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
	command.Flag(cmd, "env", "give the node number in the variable `NAME` as well", &e.variable, func(name string) (string, error) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || strings.HasPrefix(name, "TICKFLAKE_") {
			return "", fmt.Errorf("want letters, digits and _, and no setting of tickflake, got %q", name)
		}
		return name, nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args) }
	to.AddCommand(cmd)
}

func (e *execution) run(ctx context.Context, args []string) error {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return errors.New("lease exec finds the processes of the program in /proc, and here is none of this container: mount it")
	}
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
	clock        *wallClock
	node         int64
	floor, limit time.Time
	ours         bool // at the last look, and not another number
}

// hold claims a number, and waits until its grant begins.
func (e *execution) hold(whole context.Context) (h *held, store stores.Store, err error) {
	ctx, cancel := e.within(whole)
	defer cancel()
	defer func() { err = e.ended(whole, ctx, err) }()
	clock := newWallClock()
	keeper, store, err := e.keeper(ctx, logger(e.Err), lease.WithClock(clock))
	if err != nil {
		return nil, nil, err
	}
	h = &held{keeper: keeper, clock: clock, node: keeper.Node()}
	h.floor, h.limit = keeper.Granted()
	for {
		ahead := h.floor.Sub(readClocks().wall)
		if ahead <= 0 {
			return h, store, nil
		}
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

// passedOn are the signals that CMD gets from us.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
