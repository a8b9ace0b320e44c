package exampletest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/internal/rig/servertest"
)

// RunREADME runs the commands below a heading of the README of the examples in a shell, in
// the top directory of the repository, and returns their output. replace holds pairs of a text
// and its replacement, for ports that may be in use. The test fails if a command fails.
func RunREADME(t testing.TB, heading string, replace ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no README")
	}
	readme, err := os.ReadFile(filepath.Join(Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, err := Commands(string(readme), heading)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(commands, replace[i]) {
			t.Fatalf("the commands below %q have no %s to replace", heading, replace[i])
		}
	}
	// If a command fails, kill those in the background.
	script := "trap 'jobs -p | xargs -r kill -9' EXIT\n" + strings.NewReplacer(replace...).Replace(commands)
	return servertest.Run(t, servertest.Config{
		Path: servertest.Find(t, "bash", "bash"),
		Args: []string{"-xeuo", "pipefail", "-c", script},
		Env:  []string{"TMPDIR=" + t.TempDir()},
		Dir:  filepath.Dir(Root()),
		Wait: 5 * patience,
	})
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// Commands returns the shell commands between a heading of a Markdown text and the next one.
func Commands(markdown, heading string) (string, error) {
	_, section, ok := strings.Cut(markdown, "\n## "+heading+"\n")
	if !ok {
		return "", fmt.Errorf("no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(section, -1) {
		commands.WriteString(block[1])
	}
	if commands.Len() == 0 {
		return "", fmt.Errorf("no shell commands below the heading %q", heading)
	}
	return commands.String(), nil
}
