//go:build unix

package orders

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/internal/rig/servertest"
)

const pagePath = "../../docs/service.md"

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// blocks returns the fenced blocks of a page by language.
func blocks(text string) map[string][]string {
	found := make(map[string][]string)
	for _, b := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found[b[1]] = append(found[b[1]], b[2])
	}
	return found
}

// language is how the code of a language is run, and what it prints.
type language struct {
	extension string
	command   func(*testing.T) string
	prints    string
}

// An ID, three IDs, a number, and the last of ten numbers after it.
const fourLines = `^\d{15,19}\n\W*(\d{15,19}\W+){3}(\d+)\n(\d+)\n`

var languages = map[string]language{
	"python": {"py", python, fourLines + `\['\d+', \d+\]\n$`},
	"js":     {"mjs", node, fourLines + `\[ '\d+', \d+ \]\n$`},
	"php": {"php", func(t *testing.T) string {
		return interpreter(t, "php", "php-cli", "php-redis", "-r", `exit(extension_loaded("redis") ? 0 : 1);`)
	}, fourLines + "$"},
	"ruby": {"rb", func(t *testing.T) string {
		return interpreter(t, "ruby", "ruby", "ruby-redis", "-e", "require 'redis'")
	}, fourLines + "$"},
}

// notRun are the languages of the page whose code is not run: the page says so of Java, and
// TestPageClients reads the YAML.
var notRun = map[string]bool{"java": true, "yaml": true}

// The code of the page runs as it stands, but for the ports.
func TestPageRuns(t *testing.T) {
	t.Parallel()
	s := serve(t, "segmented")
	ports := strings.NewReplacer("6380", strconv.Itoa(s.resp), "8380", strconv.Itoa(s.http))
	found := blocks(page(t, pagePath))
	for name := range found {
		_, runs := languages[name]
		assert.True(t, runs || name == "sh" || notRun[name], "the code in %s is not run", name)
	}
	for name, l := range languages {
		require.Len(t, found[name], 1, name)
		t.Run(name, func(t *testing.T) {
			command := l.command(t)
			dir := t.TempDir()
			if name == "js" {
				dir = modules(t)
			}
			path := filepath.Join(dir, "page."+l.extension)
			require.NoError(t, os.WriteFile(path, []byte(ports.Replace(found[name][0])), 0o600))
			out, err := exec.Command(command, path).CombinedOutput()
			require.NoError(t, err, "%s", out)
			match := regexp.MustCompile(l.prints).FindStringSubmatch(string(out))
			require.NotNil(t, match, "%s", out)
			number, err := strconv.Atoi(match[2])
			require.NoError(t, err)
			last, err := strconv.Atoi(match[3])
			require.NoError(t, err)
			assert.Equal(t, number+10, last)
		})
	}
}

// The commands of the page run in their order, but for the ports.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	bash := servertest.Find(t, "bash", "bash")
	servertest.Find(t, "curl", "curl")
	servertest.Find(t, "redis-cli", "redis-tools")
	s := serve(t, "")
	ports := strings.NewReplacer("6380", strconv.Itoa(s.resp), "8380", strconv.Itoa(s.http))
	commands := blocks(page(t, pagePath))["sh"]
	prints := []string{
		`^\d{15,19}\n\{"ids":\["\d+"\]\}\n\{"ids":\["\d+","\d+","\d+"\]\}\n$`,
		`(?s)\n1\n\{"name":"orders","mode":"segmented","first":"2","last":"2","count":1,"stride":1\}\n$`,
		`(?s)^id\n\d+\ntime\n20\d\d-.*\n(\d{15,19}\n){3}\{"id":.*\n(\d{15,19}\n){5}\{"name":"orders",.*"first":"3","last":"12",.*\n\{"name":"orders",.*\n$`,
	}
	require.Len(t, commands, len(prints))
	for i, block := range commands {
		out := servertest.Run(t, servertest.Config{
			Path: bash, Args: []string{"-euo", "pipefail", "-c", strings.ReplaceAll(ports.Replace(block), "go run ./cmd/tickflake", "tickflake")},
			Env: []string{s.environment(), "PATH=" + filepath.Dir(tickflake(t)) + ":" + os.Getenv("PATH")},
		})
		assert.Regexp(t, prints[i], out, block)
	}

	// So do those of the README of the repository.
	lines := regexp.MustCompile(`(?m)^    ((redis-cli|curl) .*)$`).FindAllStringSubmatch(page(t, "../../README.md"), -1)
	require.Len(t, lines, 2)
	for _, line := range lines {
		out := servertest.Run(t, servertest.Config{Path: bash, Args: []string{"-euc", ports.Replace(line[1])}})
		assert.Regexp(t, `\d{15,19}`, out, line[1])
	}
}

// The commands of the README run when they are pasted, on other ports.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	for name, debian := range map[string]string{"npm": "npm", "curl": "curl"} {
		servertest.Find(t, name, debian)
	}
	readme := page(t, "README.md")
	commands := blocks(readme)["sh"]
	require.Len(t, commands, 1)
	replace := []string{"python3 ", python(t) + " ", "node ", node(t) + " "}
	for _, port := range []string{"6380", "8081", "8082"} {
		replace = append(replace, port, strconv.Itoa(servertest.Port(t)))
	}
	serving := "serve --grpc off"
	require.Contains(t, commands[0], serving)
	replace = append(replace, serving, serving+" --http off --resp 127.0.0.1:"+replace[5])
	dir := t.TempDir()
	out := servertest.Run(t, servertest.Config{
		Path: servertest.Find(t, "bash", "bash"),
		Args: []string{"-xeuo", "pipefail", "-c", "trap 'jobs -p | xargs -r kill -9' EXIT\n" + strings.NewReplacer(replace...).Replace(commands[0])},
		Env:  []string{"TMPDIR=" + dir, "XDG_STATE_HOME=" + dir}, Dir: filepath.Dir(exampletest.Root()),
	})
	assert.Regexp(t, `\{"id": ?"\d+", ?"number": ?1, ?"customer": ?"Ada"\}`, out)
	assert.Regexp(t, `\{"id": ?"\d+", ?"number": ?2, ?"customer": ?"Grace"\}`, out)
}

// The file of clients on the page is one that the command reads.
func TestPageClients(t *testing.T) {
	t.Parallel()
	files := blocks(page(t, pagePath))["yaml"]
	require.Len(t, files, 1)
	path := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(path, []byte(files[0]), 0o600))
	printed := servertest.Run(t, servertest.Config{Path: tickflake(t), Args: []string{"serve", "--config", path, "--print-config"}, Env: []string{"XDG_STATE_HOME=" + t.TempDir()}})
	_, clients, found := strings.Cut(printed, "\nclients:\n")
	require.True(t, found, printed)
	for _, value := range regexp.MustCompile(`(?m)[a-z-]+: [^\[\n]+$`).FindAllString(files[0], -1) {
		assert.Contains(t, clients, value)
	}
}
