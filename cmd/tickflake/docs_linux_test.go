package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

// placeholders are words of the documentation that stand for a value.
var placeholders = map[string]string{"NODE": "5", "NODES": "5", "N": "5", "ID": "5", "NAME": "orders", "DURATION": "1s", "DATE": "2027-06-30", "TIME": "2027-06-30T12:00:00Z", "LAYOUT": "twitter"}

// TestDocs runs the command lines that a page shows with what they print, and parses all others, so
// that no page has a command or a flag that does not exist.
func TestDocs(t *testing.T) {
	session := regexp.MustCompile("(?ms)^[$] tickflake ([^\n]*)\n(.*?)\n(?:[$] |```)")
	line := regexp.MustCompile("(?m)(?:^|^    |`|[$] |[$]dir/|[.]/)(?:go run ./cmd/)?tickflake ((?:serve|sequence|lease|layout|decode|generate|help|completion)[^`\n]*)")
	ran, parsed := 0, 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".md") || entry.Name() == "results.md" { // the report
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range session.FindAllStringSubmatch(string(text), -1) {
			shown, _ := exec.Command("tickflake", strings.Fields(found[1])...).CombinedOutput() // some show an error
			assert.Equal(t, found[2], strings.TrimRight(string(shown), "\n"), "%s: %s", path, found[1])
			ran++
		}
		for _, found := range line.FindAllStringSubmatch(string(text), -1) {
			var args []string
			for word := range strings.FieldsSeq(regexp.MustCompile(`[#>&|;…].*`).ReplaceAllString(found[1], "")) {
				word = strings.Trim(word, `'"`)
				args = append(args, cmp.Or(placeholders[word], word))
			}
			cmd, rest, err := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}).Find(args)
			if assert.NoError(t, err, "%s: %s", path, found[1]) {
				err := cmd.ParseFlags(rest)
				assert.True(t, err == nil || errors.Is(err, pflag.ErrHelp), "%s: %s: %v", path, found[1], err)
				if rest = cmd.Flags().Args(); len(rest) > 0 {
					assert.NoError(t, cmd.ValidateArgs(rest), "%s: %s", path, found[1])
				}
			}
			parsed++
		}
		return err
	}))
	assert.Positive(t, ran)
	assert.Greater(t, parsed, 50)
}

// execBlocks are the blocks of code of docs/exec.md in a language.
func execBlocks(t *testing.T, language string) (all []string) {
	page, err := os.ReadFile("../../docs/exec.md")
	require.NoError(t, err)
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, found[1])
	}
	require.NotEmpty(t, all)
	return all
}

// leaseExec is lease exec of a program in a directory that has the files.
func leaseExec(t *testing.T, files map[string]string, args ...string) *exec.Cmd {
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("tickflake", append([]string{"lease", "exec", "--store", filepath.Join(dir, "state"), "--layout", "twitter", "--node", "700", "--"}, args...)...)
	cmd.Dir = dir
	return cmd
}

// checkIDs checks so many IDs of node number 700: each is there once.
func checkIDs(t *testing.T, count int, text string) (ids []snowflake.ID) {
	for word := range strings.FieldsSeq(text) {
		id, err := snowflake.Parse(word)
		require.NoError(t, err)
		d, err := snowflake.Twitter().Decode(id)
		require.NoError(t, err)
		require.EqualValues(t, 700, d.Node)
		ids = append(ids, id)
	}
	require.Equal(t, count, len(ids))
	require.Equal(t, count, len(slices.Compact(slices.Sorted(slices.Values(ids)))))
	return ids
}

// TestExecPage runs the programs of docs/exec.md, also with a clock that was set back by an hour; from several
// threads; and in other processes, which they refuse.
func TestExecPage(t *testing.T) {
	for _, p := range []struct{ language, program, behind, beside, text string }{
		{"python", "python3", "import time; ns = time.time_ns; time.time_ns = lambda: ns() - 3600 * 10**9\n", `
from concurrent.futures import ThreadPoolExecutor
import sys
sys.setswitchinterval(1e-6)
with ThreadPoolExecutor(8) as pool:
    for ids in pool.map(lambda _: [next_id() for _ in range(5000)], range(8)):
        print(*ids, sep="\n")
sys.stdout.flush()
if os.fork() == 0:
    next_id()
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
`, "RuntimeError: a fork has the node number of its parent"},
		{"js", "node", "const now = Date.now; Date.now = () => now() - 3600e3\n", `
const ended = new Promise(end => require('node:cluster').fork().on('exit', end))
new (require('node:worker_threads').Worker)(__filename).on('error', async error => {
  console.error('thread: ' + error.message)
  process.exit(await ended)
})
`, "thread: a worker has the node number of its parent"},
	} {
		t.Run(p.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.program); err != nil {
				t.Skip(err)
			}
			code := execBlocks(t, p.language)[0]
			for _, before := range []string{"", p.behind} {
				cmd := leaseExec(t, map[string]string{"program": before + code}, "sh", "-c", "echo $LEASE_FLOOR_ID; exec $0 program", p.program)
				shown, err := cmd.Output()
				require.NoError(t, err)
				floor, rest, _ := strings.Cut(string(shown), "\n")
				ids := checkIDs(t, 5000, rest)
				require.True(t, slices.IsSorted(ids))
				require.LessOrEqual(t, floor, ids[0].String())
				require.Equal(t, before != "", floor == ids[0].String(), "it begins at the floor if its clock is behind")
			}
			cmd := leaseExec(t, map[string]string{"program": code + p.beside}, p.program, "program")
			var said strings.Builder
			cmd.Stderr = &said
			shown, err := cmd.Output()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode(), &said)
			require.Contains(t, said.String(), p.text)
			checkIDs(t, map[string]int{"python": 45000, "js": 5000}[p.language], string(shown))
		})
	}
}

// TestExecWorkers runs gunicorn and Celery as docs/exec.md shows: several requests and tasks at once, and what it says of a
// second worker.
func TestExecWorkers(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP) // under nohup it is ignored, so that tickflake passes none on
	page, err := os.ReadFile("../../docs/exec.md")
	require.NoError(t, err)
	python := execBlocks(t, "python")
	for program, test := range map[string]struct {
		app, ask string
		end      string // what ends it, and the exit code
		code     int
	}{
		"gunicorn": {`
def app(environ, start):
    start("200 OK", [])
    return [b"%d\n" % next_id() for _ in range(100)]
`, `for i in 1 2 3 4 5 6 7 8; do curl --silent --no-buffer --unix-socket socket http://x/ >$i.ids & done; wait`, "HUP", 3},
		"celery": {`
import celery
celery = celery.Celery(broker="filesystem://", broker_transport_options={"data_folder_in": ".", "data_folder_out": "."}, worker_hijack_root_logger=False)
@celery.task(name="ids")
def ids(i):
    text = "".join("%d\n" % next_id() for _ in range(100))
    with open("%d.part" % i, "w") as file:
        file.write(text)
    os.rename("%d.part" % i, "%d.ids" % i)
`, `LEASE_NODE=0 LEASE_FLOOR_MS=0 python3 -c 'import orders; [orders.ids.delay(i) for i in range(8)]'; until test $(ls *.ids 2>/dev/null | wc -l) = 8; do sleep 0.05; done`, "TERM", 0},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			shown := regexp.MustCompile(`(?m)^    tickflake lease exec --layout twitter -- (` + program + ` .*)$`).FindSubmatch(page)
			require.NotNil(t, shown)
			args := strings.Fields(strings.Replace(string(shown[1]), "--reuse-port --bind 127.0.0.1:8000", "--bind unix:socket", 1))
			cmd := leaseExec(t, map[string]string{"orders.py": python[0] + test.app, "gunicorn.conf.py": python[1]}, append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, args...)...)
			cmd.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH")) // with the Python of Debian's packages
			p, err := launch(cmd, "Booting worker|celery@")
			require.NoError(t, err)
			t.Cleanup(p.kill)
			ask := exec.Command("sh", "-c", test.ask+"; cat *.ids")
			ask.Dir, ask.Env = cmd.Dir, cmd.Env
			out, err := ask.CombinedOutput()
			require.NoError(t, err, "%s", out)
			checkIDs(t, 800, string(out))
			require.NoError(t, cmd.Process.Signal(unix.SignalNum("SIG"+test.end)))
			code, said := p.end()
			require.Equal(t, test.code, code, "%s%s", said, &p.stderr)
		})
	}
}

// TestReference makes sure that docs/reference.md has every command. -update writes it.
func TestReference(t *testing.T) {
	page := "# Commands\n\n<!-- Written by go test ./cmd/tickflake -run TestReference -update. Edits are lost. -->\n\n" +
		"`--help` after any command has its flags, and of `serve` all settings.\n\n"
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Runnable() {
			page += "- `" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "`: " + cmd.Short + "\n"
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	root := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard})
	add(root)
	if *update {
		require.NoError(t, os.WriteFile("../../docs/reference.md", []byte(page), 0o644))
	}
	written, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	assert.Equal(t, page, string(written), "go test ./cmd/tickflake -run TestReference -update")
}
