package docs

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run are the blocks that a test executes, or compares with code that it executes: page,
// language, number of blocks, tests. The number is 0 if the test takes each block that there
// is. A block without a fence has the language "indented".
var run = []struct {
	page, language string
	count          int
	tests          []string
}{
	{"README.md", "sh", 1, []string{"TestPages"}},
	{"chaos_test/README.md", "yaml", 1, []string{"TestAction"}},
	{"docs/exec.md", "python", 2, []string{"TestExecPage", "TestExecWorkers"}},
	{"docs/exec.md", "js", 1, []string{"TestExecPage"}},
	{"docs/layout.md", "console", 0, []string{"TestDocs"}},
	{"docs/migrate/bwmarrin.md", "sh", 1, []string{"TestOneLineChange"}},
	{"docs/migrate/README.md", "console", 0, []string{"TestDocs"}},
	{"docs/service.md", "sh", 3, []string{"TestServicePage"}},
	{"docs/service.md", "python", 1, []string{"TestServicePage"}},
	{"docs/service.md", "js", 1, []string{"TestServicePage"}},
	{"docs/service.md", "php", 1, []string{"TestServicePage"}},
	{"docs/service.md", "ruby", 1, []string{"TestServicePage"}},
	{"docs/service.md", "yaml", 1, []string{"TestServicePage"}},
	{"examples/README.md", "sh", 4, []string{"TestPages"}},
	{"examples/orders/README.md", "sh", 2, []string{"TestPages"}},
	{"oteltickflake/README.md", "indented", 0, []string{"TestMetrics"}},
}

// notRun are the beginnings of lines that no test executes, with the reason.
var notRun = map[string]string{
	"go test work":                 "the test itself",
	"go mod edit -replace":         "PATH is the reader's; .ci/release-check does it",
	"apt-get ":                     "changes the machine; .ci/run does it",
	"curl -X POST 'http://127":     "TestServicePage of examples runs it",
	"redis-cli -p 6380 ID":         "TestServicePage of examples runs it",
	"grpcurl ":                     "a program that Debian does not have",
	"sha256sum --check ":           "needs a published release; GoReleaser writes the file",
	"CGO_ENABLED=0 go install ":    "needs a published release; .ci/release-check installs the command",
	"pip install ":                 "downloads a program; api/check generates the Go code",
	"python -m grpc_tools.protoc ": "as pip install",
	"protoc ":                      "as pip install",
	"# ":                           "a comment",
	"./check":                      "a step of .ci/run in api",
	"dpkg-deb -x linux-image":      "its package is the reader's; Fetch of package kernel does the same",
	"docker ":                      "needs Docker",
	"kubectl ":                     "needs a cluster; the manifests are decoded by the types of Kubernetes",
	`{"id":"`:                      "output; TestPages compares it",
	"internal/word  ":              "a list of packages",
	"step = rate × outage":         "a formula",
	"GapBound = 2 × MaxStep":       "a formula",
	"numbers = live + frozen":      "a formula",
	"try (JedisPooled ids":         "Java; the page says that no test runs it",
	"strategy borrow:1s":           "a script, whose words go test ./generator/generatortest parses",
	"sh create.sh":                 "the scripts fleet.txtar and sequence.txtar of the command line run it",
}

// allowed reports whether a line is one of notRun, and notes that.
func allowed(line string, used map[string]bool) bool {
	for start := range notRun {
		if strings.HasPrefix(line, start) {
			used[start] = true
			return true
		}
	}
	return false
}

// block is a piece of code in a page.
type block struct{ page, language, text string }

var (
	fenced   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)(?:^\n|\A)(    .*\n(?:\n|    .*\n)*)`)
)

// blocks returns the blocks of all pages but the generated report.
func blocks(t *testing.T) (all []block) {
	for _, page := range pages(t) {
		if page == "docs/results.md" {
			continue
		}
		text := read(t, page)
		for _, found := range fenced.FindAllStringSubmatch(text, -1) {
			all = append(all, block{page, found[1], found[2]})
		}
		for _, found := range indented.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			all = append(all, block{page, "indented", found[1]})
		}
	}
	return all
}

// code returns the text of all files with the ending, each line without its indent.
func code(t *testing.T, ending string) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ending {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(flush(string(text)))
		return err
	}))
	return all.String()
}

// flush returns a text whose lines have no indent.
func flush(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString("\n"+strings.TrimSpace(text)+"\n", "")
}

// TestBlocks checks every block of code in every page: a test executes it, it stands in a file of
// the repository that the tests compile or run, its commands exist, or it is one of notRun.
func TestBlocks(t *testing.T) {
	all, used, counts := blocks(t), map[string]bool{}, map[[2]string]int{}
	source := code(t, ".go")
	files := map[string]string{"go": source, "sql": code(t, ".sql") + source, "js": code(t, ".mjs"), "yaml": code(t, ".yaml")}
	for _, b := range all {
		counts[[2]string{b.page, b.language}]++
	}
	for _, r := range run {
		there := counts[[2]string{r.page, r.language}]
		assert.NotZero(t, there, "blocks of %s in %s", r.language, r.page)
		assert.Contains(t, []int{0, there}, r.count, "blocks of %s in %s: see that %v execute each, and correct the number", r.language, r.page, r.tests)
		for _, test := range r.tests {
			assert.Contains(t, source, "\nfunc "+test+"(", r.page)
		}
		delete(counts, [2]string{r.page, r.language})
	}
	for _, b := range all {
		if counts[[2]string{b.page, b.language}] == 0 {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(b.text), "\n")
		switch {
		case files[b.language] != "":
			for part := range strings.SplitSeq(flush(b.text), "\n// ...") {
				part = strings.TrimPrefix(flush(part), "\nimport ") // which files have in a group
				if b.language == "sql" {
					part = strings.TrimSpace(part) // a test may have it within a line
				}
				assert.True(t, strings.Contains(files[b.language], part), "%s: no file has this code, so no test runs it:\n%s", b.page, b.text)
			}
		case strings.HasPrefix(strings.Join(strings.Fields(first), " "), "snowflake "), b.language == "java", !command.MatchString(first):
			assert.True(t, allowed(first, used), "%s: no test executes this: let one do it, or add it to notRun\n%s", b.page, b.text)
		default:
			for line := range strings.SplitSeq(strings.TrimSpace(b.text), "\n") {
				if line = strings.TrimSpace(line); line != "" && !exists(t, b.page, line, source) {
					assert.True(t, allowed(line, used), "%s: no test executes this: let one do it, or add it to notRun\n%s", b.page, line)
				}
			}
		}
	}
	for start := range notRun {
		assert.True(t, used[start], "no page has %q: take it out of notRun", start)
	}
}

// command is how a line begins that is a command.
var command = regexp.MustCompile(`^[A-Z]*=?\d* ?(\./)?(go|tickflake|check|curl|redis-cli|grpcurl|apt-get|etcd|docker|kubectl|#) ?`)

// exists checks a line that is a command of Go or of tickflake. Those of tickflake are parsed
// by TestDocs of cmd/tickflake.
func exists(t *testing.T, page, line, source string) bool {
	line, _, _ = strings.Cut(line, "  #")
	words := strings.Fields(line)
	if len(words) > 1 && strings.HasPrefix(words[0], "SEEDS=") {
		words = words[1:]
	}
	if slices.Contains([]string{"tickflake", "./tickflake", "tickflake-chaos", "./tickflake-chaos"}, words[0]) {
		return true
	}
	if len(words) < 3 || words[0] != "go" || !slices.Contains([]string{"run", "test", "build", "get"}, words[1]) {
		return false
	}
	found := false
	for i, word := range words[2:] {
		dir, local := strings.CutPrefix(word, "./")
		if module, ok := strings.CutPrefix(word, "github.com/tickflake/tickflake"); ok {
			dir, local = strings.TrimPrefix(module, "/"), true
		}
		last := words[i+1]
		switch {
		case local && last != "-o":
			files, err := filepath.Glob(filepath.Join("..", strings.TrimSuffix(dir, "/..."), "*.*"))
			assert.True(t, err == nil && len(files) > 0, "%s: %s: no package", page, line)
			found = true
		case last == "-run" && word != "'^$'":
			name := regexp.MustCompile(`\w+`).FindString(word)
			assert.Regexp(t, "\nfunc Test\\w*"+strings.TrimPrefix(name, "Test")+`|"`+name, source, "%s: %s: no test", page, line)
		case last == "-bench" && word != ".":
			assert.Contains(t, source, "\nfunc Benchmark"+word, "%s: %s: no benchmark", page, line)
		case words[1] == "test" && regexp.MustCompile(`^-\w+\.?\w+`).MatchString(word):
			flag, _, _ := strings.Cut(strings.TrimPrefix(word, "-"), "=")
			if !slices.Contains([]string{"run", "bench", "benchtime", "timeout", "tags", "race", "rapid.checks"}, flag) {
				assert.Contains(t, source, `("`+flag+`"`, "%s: %s: no flag", page, line)
			}
		}
	}
	return found
}

// TestNamedTests looks for every test that the pages on safety and evidence name: in the file
// of the link, or anywhere.
func TestNamedTests(t *testing.T) {
	source, linked := code(t, ".go"), 0
	name := regexp.MustCompile("`(?:storetest\\.)?(Test\\w+)`(?:\\]\\(\\.\\./([^)]+)\\))?")
	for _, page := range []string{"docs/safety.md", "docs/evidence.md"} {
		for _, found := range name.FindAllStringSubmatch(read(t, page), -1) {
			where := source
			if found[2] != "" {
				linked++
				where = read(t, found[2])
			}
			assert.True(t, strings.Contains(where, "\nfunc "+found[1]+"("), "%s names %s, which %s does not have", page, found[1], cmp.Or(found[2], "the code"))
		}
	}
	assert.Greater(t, linked, 30, "docs/safety.md links each test")
}
