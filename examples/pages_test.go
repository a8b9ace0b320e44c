//go:build unix

// Package examples runs the examples as users do: by the commands of their pages.
package examples

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // most of what runs waits
	program.Main(m)
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(program.Top(), path))
	require.NoError(t, err)
	return string(text)
}

// blocks returns the fenced blocks of a page by language, in the section of a heading or, with "",
// in the whole page.
func blocks(t *testing.T, page, heading string) map[string][]string {
	t.Helper()
	text := read(t, page)
	if heading != "" {
		_, section, found := strings.Cut(text, "\n## "+heading+"\n")
		require.True(t, found, "%s has no heading %q", page, heading)
		text, _, _ = strings.Cut(section, "\n## ")
	}
	found := map[string][]string{}
	for _, b := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found[b[1]] = append(found[b[1]], b[2])
	}
	return found
}

// otherPorts returns what puts free ports in the place of those that pages have.
func otherPorts(t *testing.T) *strings.Replacer {
	var pairs []string
	for _, port := range []string{"6380", "8080", "8081", "8082", "8380"} {
		pairs = append(pairs, port, strconv.Itoa(program.PortFor(t)))
	}
	return strings.NewReplacer(pairs...)
}

// cached has "go build -o FILE PACKAGE" take the linked program from the build cache, as "go run" does.
const cached = `go() { if [ "$1" = build ]; then command go run -exec cp "$4" "$3"; else command go "$@"; fi; }
`

// bash runs commands in the top directory of the repository, and returns what they print. If one
// fails the test fails, and those in the background are killed.
func bash(t *testing.T, commands string, env ...string) string {
	t.Helper()
	for name, debian := range map[string]string{"curl": "curl", "redis-cli": "redis-tools", "npm": "npm", "node": "nodejs"} {
		if strings.Contains(commands, name+" ") {
			program.FindFor(t, name, debian)
		}
	}
	if strings.Contains(commands, "python3 ") {
		commands = strings.ReplaceAll(commands, "python3 ", program.InterpreterFor(t, "a.py")+" ")
	}
	return program.RunFor(t, program.Config{
		Path: program.FindFor(t, "bash", "bash"), Dir: program.Top(), Wait: 5 * time.Minute,
		Args: []string{"-euo", "pipefail", "-c", cached + "trap 'jobs -p | xargs -r kill -9' EXIT\n" + commands},
		Env:  append(env, "TMPDIR="+t.TempDir()),
	})
}

// languages are those of docs/service.md: what the program of each ends with, and the end of what it prints, after
// [fourLines].
var languages = map[string][2]string{"python": {"py", `\['\d+', \d+\]\n$`}, "js": {"mjs", `\[ '\d+', \d+ \]\n$`}, "php": {"php", "$"}, "ruby": {"rb", "$"}}

// fourLines are an ID, three IDs, a number, and the last of ten numbers after it.
const fourLines = `^\d{15,19}\n\W*(\d{15,19}\W+){3}(\d+)\n(\d+)\n`

// The commands of the pages run when they are pasted, but for the ports.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, heading string
		prints        []string
	}{
		{"README.md", "The first IDs", []string{`(?m)^(\d{15,19}\n){10}`, `The state is in `}},
		{"examples/README.md", "An HTTP service", []string{
			`\{"granted":"[1-9].*"node":\d+\}\n`, `\{"id":"\d+"\}\n`, `lease: released node=\d+`}},
		{"examples/README.md", "A fleet", []string{`(?m)^no ID came twice$`, `(?s)(\n\d+ +released .*){3}`}},
		{"examples/README.md", "A bulk import", []string{`(?m)^\d+,user 1,Bonn\n\d+,user 2,Bonn$`}},
		{"examples/README.md", "Kubernetes", []string{`(?m)^Dockerfile\nhttpservice$`}},
		{"examples/orders/README.md", "", []string{
			`\{"id": ?"\d+", ?"number": ?1, ?"customer": ?"Ada"\}`,
			`\{"id": ?"\d+", ?"number": ?2, ?"customer": ?"Grace"\}`,
			`\{"id": ?"\d+", ?"number": ?\d+, ?"customer": ?"Edsger"\}`}},
	} {
		t.Run(c.page+" "+c.heading, func(t *testing.T) {
			t.Parallel()
			commands := otherPorts(t).Replace(strings.Join(blocks(t, c.page, c.heading)["sh"], ""))
			out := bash(t, commands, "XDG_STATE_HOME="+t.TempDir())
			for _, pattern := range c.prints {
				assert.Regexp(t, pattern, out)
			}
		})
	}
}

// The commands of docs/service.md run in their order, and those of the README of the repository;
// then the code in each language. All but the ports are as they stand.
func TestServicePage(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	ports := otherPorts(t)
	serve := program.Config{Args: []string{"serve", "--store", store, "--grpc", "off",
		"--resp", ports.Replace("127.0.0.1:6380"), "--http", ports.Replace("127.0.0.1:8380")}}
	serve.Path, _ = program.Build("./cmd/tickflake", false)
	serve.Ready = program.Answers(ports.Replace("http://127.0.0.1:8380/readyz"))
	program.For(t, serve)

	page := blocks(t, "docs/service.md", "")
	prints := []string{
		`^\d{15,19}\n\{"ids":\["\d+"\]\}\n\{"ids":\["\d+","\d+","\d+"\]\}\n$`,
		`(?s)\n1\n\{"name":"orders","mode":"segmented","first":"2","last":"2","count":1,"stride":1\}\n$`,
		`(?s)^id\n\d+\ntime\n20\d\d-.*\n(\d{15,19}\n){3}\{"id":.*\n\{"ids":\[("\d+",?){5}\]\}\n\{"name":"orders",.*"first":"3","last":"12",.*\n$`,
		`\{"ids":\["\d+","\d+","\d+"\]\}\n\d{15,19}\n$`,
		`there is nothing to serve`,
	}
	readme := regexp.MustCompile(`(?m)^    ((?:redis-cli|curl) .*\n)`).FindAllStringSubmatch(read(t, "README.md"), -1)
	require.Len(t, readme, 2)
	commands := append(page["sh"], readme[0][1]+readme[1][1],
		"for f in reports prometheus; do (umask 077; head -c 24 /dev/urandom | base64 >$TMPDIR/$f.token); done\n"+
			"cat > $TMPDIR/clients.yaml <<END\n"+strings.ReplaceAll(page["yaml"][0], "/etc/tickflake/", "$TMPDIR/")+"END\ngo run ./cmd/tickflake serve --config $TMPDIR/clients.yaml --resp off --http off --grpc off 2>&1 || :")
	require.Len(t, commands, len(prints))
	for i, block := range commands {
		assert.Regexp(t, prints[i], bash(t, ports.Replace(block), "TICKFLAKE_STORE="+store), block)
	}
	for name, l := range languages {
		require.Len(t, page[name], 1, name)
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page."+l[0])
			command := program.InterpreterFor(t, path)
			if name == "js" {
				dir := filepath.Dir(path)
				bash(t, "cp examples/orders/package*.json "+dir+"\nnpm ci --prefix "+dir+" --ignore-scripts --no-audit --no-fund --loglevel error")
			}
			require.NoError(t, os.WriteFile(path, []byte(ports.Replace(page[name][0])), 0o600))
			out := program.RunFor(t, program.Config{Path: command, Args: []string{path}})
			match := regexp.MustCompile(fourLines + l[1]).FindStringSubmatch(out)
			require.NotNil(t, match, "%s", out)
			number, err := strconv.Atoi(match[2])
			require.NoError(t, err)
			assert.Equal(t, strconv.Itoa(number+10), match[3])
		})
	}
}
