//go:build unix

package engines

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

func TestPast(t *testing.T) {
	if testing.Short() {
		t.Skip("-short starts no process")
	}
	testPast(t, t.TempDir())
}

// testPast has three processes issue IDs for old rows in any order, beside generators. Most rows begin a bucket, so a
// process that is stopped or killed is mostly between drawing a lane and using it. All IDs are distinct, and each decodes to
// its row's instant.
func testPast(t *testing.T, url string) {
	layout := snowflake.Default()
	layout.NodeBits, layout.SequenceBits, layout.Epoch = 3, 4, time.Now().Truncate(time.Hour).Add(-2*time.Hour)
	require.NoError(t, lease.SetFleet(Within(t), Open(t, url), lease.Fleet{Layout: layout, From: 0, To: 7, Past: []lease.Past{{From: 4, To: 7, Bucket: time.Second, Lane: 1}}}))
	path, err := program.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	const rows, seconds = 1500, 1000
	var input strings.Builder
	var instants []int64
	rng := rand.New(rand.NewPCG(1, 2))
	for range rows {
		instants = append(instants, layout.Epoch.Add(time.Duration(rng.IntN(seconds*1000))*time.Millisecond).UnixMilli())
		fmt.Fprintln(&input, instants[len(instants)-1])
	}
	ctx, end := context.WithTimeout(context.Background(), 2*Patience)
	defer end()
	var all, live fleet.Ledger
	var working sync.WaitGroup
	issuing, rest := context.WithCancel(ctx)
	defer rest()
	for i := range 2 {
		gen, err := generator.Open(ctx, url, generator.WithLayout(layout))
		require.NoError(t, err)
		defer gen.Close()
		working.Go(func() {
			for issuing.Err() == nil {
				pause() // what matters is that they share the ticks of the store
				if id, err := gen.NextContext(issuing); err == nil {
					live.Add("", 0, 0, 1)
					all.Add(fmt.Sprint("live", i), 0, 0, int64(id))
				}
			}
		})
	}
	// A process that is killed begins anew, with its rows that have no ID, as an import does.
	var old fleet.Ledger
	issue := func(name string, kills bool) {
		for done := 0; done < rows; {
			cmd := exec.CommandContext(ctx, path, "generate", "--at", "-", "--times", "unix-ms", "--store", url, "--timeout", "1m", "--log-level", "error")
			var out, said bytes.Buffer
			lines := strings.SplitAfter(input.String(), "\n")[done:]
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(lines, "")), &out, &said
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			killed := false
			for turn := 0; ; turn++ {
				select {
				case err := <-over:
					if err != nil && !killed {
						t.Errorf("%s: %v: %s", name, err, said.String())
						return
					}
				case <-time.After(40 * time.Millisecond):
					if turn == 8 && kills {
						killed = true
						_ = cmd.Process.Kill()
					} else {
						_ = cmd.Process.Signal(syscall.SIGSTOP)
						pause()
						_ = cmd.Process.Signal(syscall.SIGCONT)
					}
					continue
				}
				break
			}
			ids := strings.SplitAfter(out.String(), "\n")
			for _, line := range ids[:len(ids)-1] { // the last is empty, or cut off
				id, err := snowflake.Parse(strings.TrimSpace(line))
				if d, failed := layout.Decode(id); err != nil || failed != nil || d.Time.UnixMilli() != instants[done] || d.Node < 4 {
					t.Errorf("%s: row %d of %d has the ID %s: %v %v", name, done, instants[done], line, d, err)
					return
				}
				old.Add(name, 0, 0, int64(id))
				all.Add(name, 0, 0, int64(id))
				done++
			}
			kills = false
		}
	}
	var importing sync.WaitGroup
	for i := range 3 {
		importing.Go(func() { issue(fmt.Sprint("old", i), i < 2) })
	}
	importing.Wait()
	rest()
	working.Wait()
	n, _ := old.Count()
	require.EqualValues(t, 3*rows, n)
	more, _ := live.Count()
	require.Positive(t, more, "the generators issued beside")
	twice, example := all.Twice()
	require.Zero(t, twice, example)
}
