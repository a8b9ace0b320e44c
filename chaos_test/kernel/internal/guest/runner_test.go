//go:build linux

package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

const wellName = "well"

// well issues numbers as a subject of the bench does.
func well() subject.Subject {
	return subject.Subject{Name: wellName, Group: "tickflake", Numbers: true, Ordered: true, Open: func(context.Context, subject.Place) (subject.Source, error) {
		var last int64
		return subject.Source{Next: func(context.Context) (string, time.Duration, error) {
			last = max(last+1, time.Now().UnixNano())
			return strconv.FormatInt(last, 10), 0, nil
		}}, nil
	}}
}

func TestMain(m *testing.M) {
	subject.Add(well())
	Main()
	os.Exit(m.Run())
}

// runProgram runs the fault "none" on a shell script beside a subject that is well. It is the
// other end of serve, without a machine.
func runProgram(t *testing.T, script string) Result {
	t.Helper()
	old := programPath
	t.Cleanup(func() { programPath = old })
	programPath = filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(programPath, []byte("#!/bin/sh\n"+script), 0o755))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(context.Background(), inR, outW, t.TempDir(), false); outW.Close() }()
	send := func(r Request) {
		line, err := json.Marshal(r)
		require.NoError(t, err)
		_, err = inW.Write(append(line, '\n'))
		require.NoError(t, err)
	}
	send(Request{Run: "none", Subjects: []string{Program, wellName}, Args: []string{"5"}})
	var results []Result
	for in := bufio.NewScanner(outR); in.Scan(); {
		var m Message
		require.NoError(t, json.Unmarshal(in.Bytes(), &m))
		require.Empty(t, m.Failed)
		switch {
		case m.Ask == "time":
			send(Request{Answer: &Answer{Text: strconv.FormatInt(time.Now().UnixNano(), 10)}})
		case m.Result != nil:
			results = append(results, *m.Result)
		case m.Done != "":
			send(Request{PowerOff: true})
		}
	}
	require.ErrorIs(t, <-done, context.Canceled)
	require.Len(t, results, 2)
	require.Zero(t, results[1].Verdict.Failed)
	require.Greater(t, results[1].Verdict.IDs, 50, "the subject beside is starved")
	return results[0]
}

// A program of a user may do anything.
func TestProgram(t *testing.T) {
	for name, c := range map[string]struct {
		script      string
		least, most int // IDs
		err         string
	}{
		// A second at the bounded rate, and the pipe when it is killed: without the bound, millions.
		"floods":             {`exec awk 'BEGIN { for (i = 1; ; i++) print i }'`, 100, 40_000, ""},
		"floods and ends":    {"test -e printed && exec sleep 1000; touch printed; exec seq 1 12000", 12000, 12000, "the process ended by itself: exit status 0"},
		"ends":               {"echo $1; echo oh no >&2; exit 3", 2, 10, "the process ended by itself: exit status 3: oh no"},
		"prints nothing":     {"", 0, 0, "the process ended by itself: exit status 0"},
		"prints bytes":       {`printf '\377\n'; exec sleep 1000`, 0, 0, `a line is no text in UTF-8: "\xff"`},
		"prints a long line": {`exec awk 'BEGIN { for (;;) printf "x" }'`, 0, 0, "a line of more than 4096 bytes"},
		"has children":       {"setsid sleep 5 & echo 1; wait", 1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := runProgram(t, c.script).Verdict
			assert.GreaterOrEqual(t, v.IDs, c.least)
			assert.LessOrEqual(t, v.IDs, c.most)
			assert.Contains(t, v.Error, c.err)
			if c.err == "" {
				assert.Zero(t, v.Failed, v.Error)
			}
		})
	}
}
