package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/stores"
)

// run carries out a command line in this process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, newRoot, args, stdin, stdout, stderr)
}

// result is what a command line came to.
type result struct {
	code     int
	out, err string
}

func (r result) lines() []string {
	return strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
}

// tickflake runs a command line in this process, with nothing to read.
func tickflake(args ...string) result { return tickflakeReading("", args...) }

func tickflakeReading(input string, args ...string) result {
	var out, err strings.Builder
	// Cobra takes nil for "those of the process".
	code := run(context.Background(), append([]string{}, args...), strings.NewReader(input), &out, &err)
	return result{code, out.String(), err.String()}
}

// failingWriter fails with err after so many bytes.
type failingWriter struct {
	room int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(w.room, len(p))
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

// exitTest is a command line, in which STATE stands for a new directory.
type exitTest struct {
	line string
	code int
	err  string // the whole of stderr; "*" at the end stands for anything on that line
}

func TestExitCodes(t *testing.T) {
	stores.Register("broken", func(context.Context, string) (stores.Store, error) {
		return nil, fmt.Errorf("no answer: %w", syscall.EPIPE)
	})
	t.Cleanup(func() { stores.Register("broken", nil) })
	const plan = "layout plan --nodes 4 --rate 10 --years 5"
	tests := append([]exitTest{
		{"generate", 0, ""},
		{"decode 5", 0, ""},
		{"layout list", 0, ""},
		{"layout show 41/10/12", 0, ""},
		{plan, 0, ""},
		{"lease list --timeout 1m", 0, ""},
		{"lease list --layout javascript", 0, ""},

		{"lease list --store broken://h", 1, "tickflake: no answer: broken pipe"},
		{"serve --resp off --http 127.0.0.1:0 --grpc off --store broken://h", 1, "tickflake: no answer: broken pipe"},

		{"generate --layout baidu", 1, `tickflake: --layout: *layout "baidu": the time field, 28 bits of 1s from 2016-05-19T16:00:00Z, ended at 2024-11-20T13:24:16Z*`},
		{"generate --layout twitter,epoch=2262-01-01", 1, `tickflake: --layout: *layout: epoch 2262-01-01T00:00:00Z is *`},
		{"generate --count 100000 --strategy reject --layout time=41,sequence=12,tick=1h --store STATE", 1, `tickflake: sequence exhausted: *`},
		{"decode x", 1, `tickflake: argument 1: decimal ID "x": malformed: bad character "x" at offset 0`},
		{"layout plan --nodes 1000 --rate 1e6 --years 100 --bits 53", 1, `tickflake: plan: 1000 nodes, 1000000 IDs/s per node and 100 years need *`},

		{"lease list --store /nosuch/dir", 1, "tickflake: no node number was ever claimed here: there is no directory /nosuch/dir: check --store"},
		{"lease release 7 --layout javascript,epoch=2001-01-01", 1, "tickflake: no node number was ever claimed here: there is no directory *"},

		{"nosuch", 2, "tickflake: unknown command \"nosuch\" for \"tickflake\"\nsee 'tickflake --help'"},
		{"layout nosuch", 2, "tickflake: unknown command \"nosuch\" for \"tickflake layout\"\nsee 'tickflake layout --help'"},
		{"generate 5", 2, "tickflake: generate takes no arguments, got \"5\"\nsee 'tickflake generate --help'"},
		{"generate --count 0", 2, "tickflake: --count: want at least 1, got 0\nsee 'tickflake generate --help'"},
		{"generate --count 1.5", 2, "tickflake: --count: want a whole number, got \"1.5\"\nsee 'tickflake generate --help'"},
		{"generate --count 9223372036854775808", 2, "tickflake: --count: 9223372036854775808 is out of range, want a number of 64 bits\nsee 'tickflake generate --help'"},
		{"generate --node x", 2, "tickflake: --node: want a whole number, got \"x\"\nsee 'tickflake generate --help'"},
		{"generate --node -1", 2, "tickflake: --node: node -1 is out of range: it is negative; give a number from 0 to 1023\nsee 'tickflake generate --help'"},
		{"generate --node 1024", 2, "tickflake: --node: node 1024 is out of range: it needs 11 bits, but the field has 10 bits*\nsee 'tickflake generate --help'"},
		{"generate --node 128 --layout javascript", 2, "tickflake: --node: node 128 is out of range: it needs 8 bits, but the field has 7 bits*\nsee 'tickflake generate --help'"},
		{"generate --no-state --store file:x", 2, "tickflake: if any flags in the group [no-state store] are set none of the others can be; [no-state store] were all set\nsee 'tickflake generate --help'"},
		{"generate --window 5ms", 2, "tickflake: --window: window of 5ms: want 6ms to 8784h0m0s\nsee 'tickflake generate --help'"},
		{"generate --timeout 5", 2, "tickflake: --timeout: want a duration such as 500ms or 5s, got \"5\"\nsee 'tickflake generate --help'"},
		{"generate --store nosuch://x", 2, "tickflake: --store: store URL: unknown scheme \"nosuch\"; want file:PATH, or one of etcd,*\nsee 'tickflake generate --help'"},
		{"generate --store mysql://host", 2, "tickflake: --store: mysql store URL: *\nsee 'tickflake generate --help'"},
		{"generate --store /dev/null", 1, "tickflake: state directory \"/dev/null\" is not fit for cells: it is not a directory"},
		{"lease list --store /dev/null", 1, "tickflake: state directory \"/dev/null\" is not fit for cells: it is not a directory"},
		{"lease list x", 2, "tickflake: want a node number from 0 to 4194303 or a range such as 0-3, got \"x\"\nsee 'tickflake lease list --help'"},
		{"lease list 3-1", 2, "tickflake: want a node number from 0 to 4194303 or a range such as 0-3, got \"3-1\"\nsee 'tickflake lease list --help'"},
		{"lease release 1-2", 2, "tickflake: want one node number, got \"1-2\"\nsee 'tickflake lease release --help'"},
		{"lease reserve 0-3 --until soon", 2, "tickflake: --until: want a date such as 2027-06-30 or 2027-06-30T12:00:00Z, got \"soon\"\nsee 'tickflake lease reserve --help'"},
		{"lease release 1 2", 2, "tickflake: 2 node numbers given, want one\nsee 'tickflake lease release --help'"},
		{"lease nosuch --format json", 2, "tickflake: unknown command \"nosuch\" for \"tickflake lease\"\nsee 'tickflake lease --help'"},
		{"lease nosuch --help", 2, "tickflake: unknown command \"nosuch\" for \"tickflake lease\"\nsee 'tickflake lease --help'"},
		{"help nosuch", 2, "tickflake: unknown command \"nosuch\" for \"tickflake\"\nsee 'tickflake help --help'"},
		{"help lease nosuch", 2, "tickflake: unknown command \"nosuch\" for \"tickflake lease\"\nsee 'tickflake help --help'"},
		{"generate --layout nosuch", 2, "tickflake: --layout: *spec \"nosuch\", byte 0, \"nosuch\": not a preset *\nsee 'tickflake generate --help'"},
		{"generate --layout 37/20/16", 2, "tickflake: --layout: spec \"37/20/16\": unusable layout: widths 37+20+16 sum to 73 bits; at most 63 fit*37 bits of 1ms last 4.36 years\nsee 'tickflake generate --help'"},
		{"generate --strategy nosuch", 2, "tickflake: --strategy: invalid strategy \"nosuch\": not known*\nsee 'tickflake generate --help'"},
		{"generate --strategy wait:-1s", 2, "tickflake: --strategy: invalid strategy \"wait:-1s\": *\nsee 'tickflake generate --help'"},
		{"generate --format text", 2, "tickflake: --format: want dec, base32, base58, base62 or json, got \"text\"\nsee 'tickflake generate --help'"},
		{"decode --format dec 5", 2, "tickflake: --format: want text or json, got \"dec\"\nsee 'tickflake decode --help'"},
		{"decode --from json 5", 2, "tickflake: --from: want dec, base32, base58 or base62, got \"json\"\nsee 'tickflake decode --help'"},
		{"layout list twitter", 2, "tickflake: list takes no arguments, got \"twitter\"\nsee 'tickflake layout list --help'"},
		{"layout show", 2, "tickflake: 0 layouts given, want one: a name or a spec\nsee 'tickflake layout show --help'"},
		{"layout show 37/20/16", 2, "tickflake: spec \"37/20/16\": unusable layout: widths 37+20+16 sum to 73 bits*\nsee 'tickflake layout show --help'"},
		{"layout plan --nodes 0 --rate 10 --years 5", 2, "tickflake: unusable demand: a number of nodes of 0 makes no sense*\nsee 'tickflake layout plan --help'"},
		{plan + " --rate NaN", 2, "tickflake: unusable demand: a rate per node of NaN makes no sense*\nsee 'tickflake layout plan --help'"},
		{plan + " --years x", 2, "tickflake: --years: want a number, got \"x\"\nsee 'tickflake layout plan --help'"},
		{plan + " --bits 0", 2, "tickflake: --bits: want 1 to 63, got 0\nsee 'tickflake layout plan --help'"},
		{plan + " --bits 64", 2, "tickflake: --bits: want 1 to 63, got 64\nsee 'tickflake layout plan --help'"},
		{plan + " --epoch soon", 2, "tickflake: --epoch: the epoch must be an instant like 2025-01-01T00:00:00Z, a date*\nsee 'tickflake layout plan --help'"},
		{plan + " --epoch 1900-01-01", 2, "tickflake: unusable demand: epoch 1900-01-01T00:00:00Z is *\nsee 'tickflake layout plan --help'"},
		{plan + " --epoch 2026-01-01,tick=1s", 2, "tickflake: --epoch: the epoch must be an instant*\nsee 'tickflake layout plan --help'"},
		{"serve --print-config", 0, ""},
		{"serve token", 0, ""},
		{"serve --max-batch 0", 2, "tickflake: --max-batch: want at least 1, got 0\nsee 'tickflake serve --help'"},
		{"serve --resp here", 2, "tickflake: --resp: want HOST:PORT or off, got \"here\"\nsee 'tickflake serve --help'"},
		{"serve --open=maybe", 2, "tickflake: --open: want true or false, got \"maybe\"\nsee 'tickflake serve --help'"},
		{"serve --resp 127.0.0.1:99999 --http off --grpc off", 1, "tickflake: --resp: cannot listen at 127.0.0.1:99999: *invalid port"},
		{"serve --resp off --http 127.0.0.1:0 --grpc off --store nosuch://x", 2, "tickflake: --store: store URL: unknown scheme \"nosuch\"*\nsee 'tickflake serve --help'"},
		{"serve --resp off --http 127.0.0.1:0 --grpc off --store STATE --node 5000", 2, "tickflake: --node: node 5000 is out of range*\nsee 'tickflake serve --help'"},
		{"serve --tls-cert /nosuch/a --tls-key /nosuch/b", 1, "tickflake: --tls-cert: *no such file*"},
	}, sequenceExits...)
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			got := tickflake(strings.Fields(strings.ReplaceAll(tt.line, "STATE", t.TempDir()))...)
			assert.Equal(t, tt.code, got.code)
			if tt.err == "" {
				assert.Empty(t, got.err)
				assert.NotEmpty(t, got.out)
				return
			}
			assert.Truef(t, matches(tt.err+"\n", got.err), "stderr is\n%s, want\n%s", got.err, tt.err)
			if tt.code == cli.Misuse {
				assert.Empty(t, got.out)
			}
		})
	}
}

// matches reports whether text is the pattern, in which "*" stands for anything
// without a line break.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:] {
		at := strings.Index(rest, part)
		if at < 0 || strings.Contains(rest[:at], "\n") {
			return false
		}
		rest = rest[at+len(part):]
	}
	return rest == ""
}

func TestInterruptedBeforeStart(t *testing.T) {
	for signal, want := range map[syscall.Signal]result{
		syscall.SIGINT:  {130, "", "tickflake: interrupted; 0 of 3 IDs written\n"},
		syscall.SIGTERM: {143, "", "tickflake: terminated; 0 of 3 IDs written\n"},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cli.Interruption{Signal: signal})
		var out, err strings.Builder
		code := run(ctx, []string{"generate", "--count", "3"}, strings.NewReader(""), &out, &err)
		assert.Equal(t, want, result{code, out.String(), err.String()})
	}
}

func TestWriteErrors(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, tickflake("generate", "--node", "3", "--store", state).code)
	require.Zero(t, tickflake("sequence", "create", "orders", "--store", state).code)
	lines := []string{
		"generate --count 100000",
		"generate --count 100000 --format json",
		"decode 1 2 3",
		"decode --format json 1 2 3",
		"layout list",
		"layout list --format json",
		"layout show twitter",
		"lease list --store " + state,
		"lease list --format json --store " + state,
		"lease release 3 --store " + state,
		"sequence create orders --store " + state,
		"sequence next orders --count 100000 --store " + state,
		"sequence next orders --count 100000 --row --store " + state,
		"sequence list --store " + state,
		"sequence list --format json --store " + state,
		"sequence show orders --store " + state,
		"sequence show orders --format json --store " + state,
		"sequence set orders --max 999999 --store " + state,
		"serve --print-config",
		"serve token",
		"completion bash",
		"--help",
		"--version",
	}
	broken := errors.New("disk on fire")
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			for _, tt := range []struct {
				cause error
				code  int
				err   string
			}{
				{broken, 1, "tickflake: disk on fire\n"},
				{syscall.EPIPE, 0, ""},
			} {
				var err strings.Builder
				code := run(context.Background(), strings.Fields(line), strings.NewReader(""), &failingWriter{10, tt.cause}, &err)
				assert.Equal(t, tt.code, code)
				assert.Equal(t, tt.err, err.String())
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"", "generate", "decode", "layout", "layout list", "layout show", "layout plan", "lease", "lease list", "lease release", "lease reserve", "lease check",
		"sequence", "sequence create", "sequence next", "sequence list", "sequence show", "sequence set", "sequence delete", "serve", "serve token"} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			byFlag := tickflake(append(args, "--help")...)
			assert.Equal(t, result{0, byFlag.out, ""}, byFlag)
			assert.Contains(t, byFlag.out, "Usage:\n  "+strings.TrimSpace("tickflake "+line))
			assert.Contains(t, byFlag.out, "Examples:\n  tickflake ")
			assert.Contains(t, byFlag.out, "\nFlags:\n")
			for _, l := range byFlag.lines() {
				assert.LessOrEqualf(t, len(l), 85, "%q is too long for a terminal", l)
			}
			assert.Equal(t, byFlag, tickflake(append([]string{"help"}, args...)...))
		})
	}
	for _, group := range []string{"", "layout", "lease", "sequence", "completion"} {
		args := strings.Fields(group)
		assert.Equal(t, tickflake(append(args, "--help")...), tickflake(args...), "a bare group is a request for help")
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := tickflake("completion", shell)
		assert.Equal(t, 0, got.code)
		assert.Contains(t, got.out, "tickflake")
	}
	tests := []struct {
		line string
		want []string
	}{
		{"generate --layout", []string{"tickflake", "twitter", "discord", "instagram", "sonyflake", "sonyflake-v1", "leaf", "baidu", "easyswoole", "javascript"}},
		{"layout show", []string{"tickflake", "twitter", "discord", "instagram", "sonyflake", "sonyflake-v1", "leaf", "baidu", "easyswoole", "javascript"}},
		{"generate --format", []string{"dec", "base32", "base58", "base62", "json"}},
		{"decode --from", []string{"dec", "base32", "base58", "base62"}},
		{"sequence create", nil},
		{"sequence create --mode", []string{"segmented", "ordered"}},
		{"sequence create --max", []string{"none"}},
		{"serve --resp", []string{"off"}},
		{"serve --node", []string{"any"}},
		{"serve --log-format", []string{"text", "json"}},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			got := tickflake(append(append([]string{"__complete"}, strings.Fields(tt.line)...), "")...)
			require.Equal(t, 0, got.code)
			lines := got.lines()
			assert.Equal(t, ":4", lines[len(lines)-1], "no file names")
			var words []string
			for _, l := range lines[:len(lines)-1] {
				word, _, _ := strings.Cut(l, "\t")
				words = append(words, word)
			}
			assert.Equal(t, tt.want, words)
		})
	}
}

// Every value that completion offers is one that the flag takes.
func TestCompletedValuesAreAccepted(t *testing.T) {
	for command, flags := range map[string][]string{
		"generate": {"--strategy", "--format"},
	} {
		for _, flag := range flags {
			words := append(strings.Fields(command), flag)
			for _, line := range tickflake(append(append([]string{"__complete"}, words...), "")...).lines() {
				value, _, _ := strings.Cut(line, "\t")
				if strings.HasPrefix(value, ":") {
					continue
				}
				got := tickflake(append(words, value)...)
				assert.Equalf(t, 0, got.code, "%s %s: %s", flag, value, got.err)
			}
		}
	}
}
