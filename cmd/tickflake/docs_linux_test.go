package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

// placeholders are words of the documentation that stand for a value.
var placeholders = map[string]string{"NODE": "5", "NODES": "5", "N": "5", "ID": "5", "NAME": "orders", "DURATION": "1s", "DATE": "2027-06-30", "LAYOUT": "twitter"}

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

// TestExecPage runs the programs of docs/exec.md, also with a clock that was set back by an hour.
func TestExecPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/exec.md")
	require.NoError(t, err)
	for _, p := range []struct{ language, program, behind string }{
		{"python", "python3", "import time; ns = time.time_ns; time.time_ns = lambda: ns() - 3600 * 10**9\n"},
		{"js", "node", "const now = Date.now; Date.now = () => now() - 3600e3\n"},
	} {
		t.Run(p.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.program); err != nil {
				t.Skip(err)
			}
			_, code, found := strings.Cut(string(page), "```"+p.language+"\n")
			require.True(t, found)
			code, _, _ = strings.Cut(code, "```")
			layout, dir := snowflake.Twitter(), t.TempDir()
			for _, before := range []string{"", p.behind} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "program"), []byte(before+code), 0o600))
				shown, err := exec.Command("tickflake", "lease", "exec", "--store", filepath.Join(dir, "state"), "--layout", "twitter", "--node", "700", "--",
					"sh", "-c", `echo $LEASE_FLOOR_ID; exec $0 `+filepath.Join(dir, "program"), p.program).Output()
				require.NoError(t, err)
				var ids []snowflake.ID
				for text := range strings.FieldsSeq(string(shown)) {
					id, err := snowflake.Parse(text)
					require.NoError(t, err)
					ids = append(ids, id)
					d, err := layout.Decode(id)
					require.NoError(t, err)
					require.EqualValues(t, 700, d.Node)
				}
				require.Len(t, ids, 5001)
				floor, ids := ids[0], ids[1:]
				require.Equal(t, before != "", floor == ids[0], "it begins at the floor if its clock is behind")
				require.Less(t, floor-1, ids[0])
				require.True(t, slices.IsSorted(ids) && len(slices.Compact(ids)) == 5000)
			}
		})
	}
}

// TestReference makes sure that docs/reference.md has every command and every setting of serve. -update
// writes it.
func TestReference(t *testing.T) {
	page := "# Commands and settings\n\n<!-- Written by go test ./cmd/tickflake -run TestReference -update. Edits are lost. -->\n\n" +
		"`--help` after any command has its flags.\n\n| command | does |\n|---|---|\n"
	row := func(cells ...string) {
		page += "| " + strings.ReplaceAll(strings.ReplaceAll(strings.Join(cells, "\x00"), "|", "\\|"), "\x00", " | ") + " |\n"
	}
	inText := regexp.MustCompile(` \(default (.*)\)$`)
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Runnable() {
			row("`"+strings.TrimSuffix(cmd.UseLine(), " [flags]")+"`", cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	root := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard})
	add(root)
	serve, _, err := root.Find([]string{"serve"})
	require.NoError(t, err)
	page += "\n## Settings of the service\n\nEach is a flag and a [variable](service.md#settings); `tickflake serve --help` says more.\n\n| flag | default | meaning |\n|---|---|---|\n"
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		shown := strings.Trim(f.DefValue, "[]")
		if found := inText.FindStringSubmatchIndex(usage); found != nil {
			shown, usage = strings.Trim(usage[found[2]:found[3]], `"`), usage[:found[0]]
		}
		usage = strings.TrimPrefix(usage, value+" ")                               // which stands in the column before
		usage = regexp.MustCompile("(, see |[;:] ).*").ReplaceAllString(usage, "") // --help says the rest
		row("`--"+strings.TrimSpace(f.Name+" "+value)+"`", cmp.Or(shown, "–"), usage)
	})
	page += "\n## Metrics\n\n[The table of all metrics](../otel/README.md#the-metrics) stands beside the alerts on them; " +
		"[the service](../service/README.md) has some of its own.\n" +
		"\n## Errors\n\n[Errors, and what to do](operate.md#errors-and-what-to-do) has the remedies, the doc of each package its errors; " +
		"[the service](service.md#errors) has codes instead.\n"
	if *update {
		require.NoError(t, os.WriteFile("../../docs/reference.md", []byte(page), 0o644))
	}
	written, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	assert.Equal(t, page, string(written), "go test ./cmd/tickflake -run TestReference -update")
}
