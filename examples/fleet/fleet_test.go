//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// The command of the README: three workers, one of which is killed.
func TestREADME(t *testing.T) {
	out := exampletest.RunREADME(t, "A fleet on etcd")
	assert.Regexp(t, `(?m)^worker 2 was killed, and had node \d+$`, out)
	assert.Regexp(t, `(?m)^\d{4,} IDs by 4 processes, none twice$`, out)

	node := make(map[string]string) // by worker
	for _, m := range regexp.MustCompile(`worker (\d) has issued \d+ IDs, on node (\d+)`).FindAllStringSubmatch(out, -1) {
		node[m[1]] = m[2]
	}
	require.Len(t, node, 4)
	for worker, n := range node {
		state := "released"
		if worker == "2" {
			state = "(held|expired)" // it was not released: whether its grant still lasts depends on the machine
		}
		assert.Regexp(t, "(?m)^node "+n+": "+state+",", out)
	}
}

// fakeEnv makes the test binary a faulty worker.
const fakeEnv = "FLEET_TEST_WORKER"

func TestMain(m *testing.M) {
	if fault := os.Getenv(fakeEnv); fault != "" {
		if err := work(fault); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	exampletest.Main(m)
}

// work is a faulty worker.
func work(fault string) error {
	layout, pid := snowflake.Default(), int64(os.Getpid())
	tick, node := layout.Epoch.Add(time.Duration(pid)*layout.Tick), pid%1000 // no other process has them
	switch fault {
	case "ends":
		return nil
	case "babbles":
		fmt.Println("hello")
	case "shares":
		node = 1000
	}
	for sequence := range int64(1000) {
		if fault == "repeats" {
			sequence /= 2
		}
		id, err := layout.Compose(tick, node, sequence)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return nil
}

// The fleet detects faulty workers.
func TestFaultyWorkers(t *testing.T) {
	fleet := exampletest.Build(t, "./fleet")
	self, err := os.Executable()
	require.NoError(t, err)
	for fault, says := range map[string]string{
		"ends":    `worker \d has ended by itself`,
		"babbles": `worker \d: decimal ID "hello"`,
		"repeats": `ID \d+ came twice`,
		"shares":  `workers \d and \d share node number 1000`,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv(fakeEnv, fault)
			p := exampletest.Start(t, fleet, "--worker", self)
			assert.Equal(t, 1, p.Wait())
			assert.Regexp(t, says, p.Stderr())
			assert.NotContains(t, p.Stdout(), "none twice")
		})
	}
}

func TestNoWorker(t *testing.T) {
	path := exampletest.Build(t, "./fleet")
	p := exampletest.Start(t, path, "--worker", "no/such/program")
	assert.Equal(t, 1, p.Wait())
	assert.Contains(t, p.Stderr(), "start worker 1")

	t.Setenv("PATH", t.TempDir()) // without go
	p = exampletest.Start(t, path)
	assert.Equal(t, 1, p.Wait())
	assert.Contains(t, p.Stderr(), "build a worker (or say with --worker where one is)")
}
