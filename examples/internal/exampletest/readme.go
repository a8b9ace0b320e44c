package exampletest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// RunREADME runs the commands that the README of the examples shows below a heading,
// as somebody would who copies them into a shell in a clone of the repository, and
// returns what they print. replace holds pairs of a text and what stands for it, for
// ports that may be taken. A command that fails ends the test.
func RunREADME(t testing.TB, heading string, replace ...string) string {
	t.Helper()
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
	// Should a command fail, what runs in the background must not go on.
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

// Commands returns the shell commands between a heading of a Markdown text and the
// next heading.
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
