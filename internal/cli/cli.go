// Package cli has the code that the commands of this repository share: the end of a command
// by a signal, and the exit codes.
//
// You need these names: [Context] is the context of a command, [Usage] marks an error as a bad
// command line, and [Code] is the exit code of an error.
package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Exit codes. After a signal the code is 128 plus its number, as shells report it.
const (
	Done     = 0
	Failed   = 1
	Misuse   = 2
	signaled = 128
)

// Context returns a context that the first SIGINT or SIGTERM ends, with an [Interruption]
// as the cause. The next signal, 100 ms or more later, kills the process, in case a write blocks.
func Context() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(s) { // as a shell has its background jobs do
			signal.Notify(signals, s)
		}
	}
	go func() { // until the process ends
		s := <-signals
		cancel(Interruption{s.(syscall.Signal)})
		settle(signals)
		signal.Stop(signals)
	}()
	return ctx
}

// settle drops the signals of the next 100 ms. They are the same as the one before: a supervisor that
// ends a process and then its group sends two.
func settle(signals <-chan os.Signal) {
	for over := time.After(100 * time.Millisecond); ; {
		select {
		case <-signals:
		case <-over:
			return
		}
	}
}

// Interruption is the end of a command by a signal.
type Interruption struct{ Signal syscall.Signal }

func (e Interruption) Error() string {
	if e.Signal == syscall.SIGINT {
		return "interrupted"
	}
	return e.Signal.String()
}

// Usage marks an error as one of the command line: the user must change it.
func Usage(err error) error { return usage{err} }

type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Exit ends a command with the exit code of a program that it has run, and with no other word.
type Exit int

func (e Exit) Error() string { return "exit code " + strconv.Itoa(int(e)) }

// Code returns the exit code of a command that ended with err, which may be nil: [Done],
// 128 plus the number of the signal for an [Interruption], that of an [Exit], [Misuse] for an
// error of [Usage], and else [Failed].
func Code(err error) int {
	var interrupted Interruption
	var bad usage
	var exit Exit
	switch {
	case err == nil:
		return Done
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &interrupted):
		return signaled + int(interrupted.Signal)
	case errors.As(err, &bad):
		return Misuse
	}
	return Failed
}
