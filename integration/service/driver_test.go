// Package service runs what stands outside the process of a service: the page in a browser, and
// clients of the Redis protocol that others have written: ioredis, node-redis, redis-py, phpredis,
// redis-rb, go-redis and redis-cli.
//
// It also puts the service through faults, through the wire: clocks are stepped, servers are killed and restarted under
// load, and strangers read nothing, or come and go, while others work. Longer runs:
//
//	go test ./integration/service -run TestFleet/^killed -service.kills 500
//	go test ./integration/service -run TestFleet/rolling -service.restarts 50
//	go test ./integration/service -run 'TestFleet/soak|TestStrangers' -service.soak 1h -timeout 2h
package service

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
)

// patience bounds each wait of a test. Only failed tests reach it.
const patience = 60 * time.Second

// foreign is a client library, with a program in testdata that runs it.
type foreign struct {
	name     string
	program  string
	incrBy   string // the library's method
	integer  string // type of an integer
	text     string // type of a string
	failures string // what a failed command in a pipeline gives: "each", "false" or "raises"
	keeps    bool   // calls while no server answers, until there is one
	connects bool   // only when it is told to, after a call that found no server
	loading  string // how its errors show LOADING
	reports  string // part of the library's error when a cluster client meets the server
}

var foreigns = []foreign{
	{name: "ioredis", program: "ioredis.mjs", incrBy: "incrby", integer: "number", text: "string", failures: "each",
		loading: "LOADING", keeps: true, reports: "None of startup nodes is available"},
	{name: "node-redis", program: "noderedis.mjs", incrBy: "incrBy", integer: "number", text: "string", failures: "each",
		loading: "LOADING", keeps: true, reports: "All the root nodes are unavailable"},
	{name: "redis-py", program: "redispy.py", incrBy: "incrby", integer: "int", text: "str", failures: "each",
		loading: "BusyLoadingError", reports: "cluster"},
	{name: "phpredis", program: "phpredis.php", incrBy: "incrBy", integer: "integer", text: "string", failures: "false",
		loading: "LOADING", connects: true, reports: "Couldn't map cluster keyspace"},
	{name: "redis-rb", program: "redisrb.rb", incrBy: "incrby", integer: "Integer", text: "String", failures: "raises",
		loading: "LOADING", reports: "cluster"},
}

// value is what a library returned.
type value struct {
	Type  string
	Text  string
	Class string // of an error
	Items []value
}

// driver is a program of testdata that runs.
type driver struct {
	*program.Process
	t       *testing.T
	foreign foreign
	in      *os.File
	answers chan string
}

// start starts the program of a client, and skips the test if something is missing.
func (f foreign) start(t *testing.T) *driver {
	t.Helper()
	c := program.Config{Path: program.InterpreterFor(t, f.program), Args: []string{f.program}, Dir: "testdata", Wait: patience}
	if strings.HasSuffix(f.program, ".mjs") {
		program.FindFor(t, "npm", "npm")
		if err := install(); err != nil && os.Getenv(program.RequireEnv) != "1" {
			t.Skip(err)
		}
		require.NoError(t, install())
		c.Dir = installed
	}
	requests, in, err := os.Pipe()
	require.NoError(t, err)
	d := &driver{t: t, foreign: f, in: in, answers: make(chan string, 1)}
	c.Input, c.Line = requests, func(line string) { d.answers <- line }
	d.Process, err = program.Start(t.Context(), c)
	require.NoError(t, err)
	_ = requests.Close() // the program has its own
	t.Cleanup(func() {
		_ = in.Close() // which ends the program
		assert.NoError(t, d.Wait(), "%s: %s", f.program, d.Output())
	})
	return d
}

// ask sends a request to the program and returns its answer.
func (d *driver) ask(do string, request map[string]any) (answer value) {
	d.t.Helper()
	if request == nil {
		request = map[string]any{}
	}
	request["do"] = do
	line, err := json.Marshal(request)
	require.NoError(d.t, err)
	_, err = d.in.Write(append(line, '\n'))
	require.NoError(d.t, err)
	select {
	case text := <-d.answers:
		require.NoError(d.t, json.Unmarshal([]byte(text), &answer), "%.200s", text)
	case <-d.Ended():
		require.Fail(d.t, "the program has ended", "%s: %s", d.foreign.program, d.Output())
	case <-time.After(patience):
		require.Fail(d.t, "the program does not answer", "%s: %.200s", d.foreign.program, line)
	}
	return answer
}

// connect makes a new client with TLS. credentials are a token, or a name and a token.
func (d *driver) connect(port int, ca string, credentials ...string) value {
	d.t.Helper()
	request := map[string]any{"port": port, "ca": ca, "password": credentials[len(credentials)-1]}
	if len(credentials) > 1 {
		request["user"] = credentials[0]
	}
	return d.ask("connect", request)
}

// connected makes a new client, which needs no token.
func (d *driver) connected(s *served) {
	d.t.Helper()
	require.NotEqual(d.t, "error", d.ask("connect", map[string]any{"port": s.port}).Type)
}

// call sends a command, by the function of the library for any command.
func (d *driver) call(args ...string) value {
	d.t.Helper()
	return d.ask("call", map[string]any{"args": args})
}

// method calls the library's own method for a command.
func (d *driver) method(args ...string) value {
	d.t.Helper()
	return d.ask("method", map[string]any{"args": args})
}

func (d *driver) pipeline(commands [][]string) value {
	d.t.Helper()
	return d.ask("pipeline", map[string]any{"commands": commands})
}

// good fails the test if the value is an error or has another type.
func (d *driver) good(v value, kind string) value {
	d.t.Helper()
	require.Equal(d.t, kind, v.Type, "%s: %s", d.foreign.name, v.Text)
	return v
}

// refused fails the test unless the value is an error whose text contains all parts.
func (d *driver) refused(v value, parts ...string) {
	d.t.Helper()
	require.Equal(d.t, "error", v.Type, "%s: %v", d.foreign.name, v)
	for _, part := range parts {
		require.Contains(d.t, v.Text, part, "%s: %s", d.foreign.name, v.Class)
	}
}

// installed is a directory with the programs of testdata and the packages of npm that they import. TestMain
// removes it.
var installed string

var install = sync.OnceValue(func() (err error) {
	if installed, err = os.MkdirTemp("", "tickflake-foreign-"); err != nil {
		return err
	}
	if err = os.CopyFS(installed, os.DirFS("testdata")); err == nil {
		_, err = program.Run(context.Background(), program.Config{Path: "npm", Dir: installed,
			Args: []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"}})
	}
	return err
})

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // if it is not given: they wait half of their time
	code := m.Run()
	_ = os.RemoveAll(installed) // "" is nothing
	_ = program.Clean()
	os.Exit(code)
}
