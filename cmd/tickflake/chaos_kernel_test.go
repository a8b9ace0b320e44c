package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel"
	"github.com/tickflake/tickflake/internal/cli"
)

// fakeReport has a row of every kind.
func fakeReport() kernel.Report {
	return kernel.Report{
		Kernel: "Linux 6.1.0-56-cloud-amd64 (Debian 6.1.192-2)", QEMU: "7.2.24",
		Rows: []kernel.Row{
			{Fault: "one", Subject: "default, raw", Group: kernel.Ours, Verdict: kernel.Verdict{IDs: 12345, Failed: 3, Stall: 12345678, Lead: time.Second, Recovery: 987654321}, Note: "9 writes"},
			{Fault: "one", Subject: "xid", Group: kernel.Peers, Verdict: kernel.Verdict{IDs: 70, Duplicates: 7, Error: "no\x1b[2J"}, Broken: []string{"7 duplicates", "it said\x1b so"}},
			{Fault: "one", Subject: "gone", Group: kernel.Peers, Skipped: "the proxy refuses it"},
			{Fault: "two", Subject: "default, raw", Group: kernel.Ours, Verdict: kernel.Verdict{IDs: 5, Duplicates: 2, Recovery: -1}, Known: "memory restored without the call"},
			{Fault: "two", Subject: "xid", Group: kernel.Peers, Skipped: "it keeps no state"},
		},
		Clocks:  []kernel.Clock{{Fault: "one", Host: 3 * time.Second, Realtime: 2 * time.Second, Monotonic: 3 * time.Second, Boottime: 3 * time.Second, Back: time.Second}},
		Skipped: []kernel.Skip{{Fault: "three", Why: "there is no nbdkit"}},
	}
}

// kernelWith runs 'tickflake chaos --kernel' on a bench that returns a report. It returns
// the options of the run too.
func kernelWith(t *testing.T, report kernel.Report, err error, args ...string) (result, *kernel.Options) {
	t.Helper()
	var got *kernel.Options
	r := chaosWith(func(k *chaos) {
		k.bench = bench{
			platform: kernelPlatform,
			find:     func() (kernel.Kernel, error) { return kernel.Kernel{Version: "found"}, nil },
			fetch:    func(context.Context, func(string)) (kernel.Kernel, error) { panic("the kernel is there") },
			run: func(_ context.Context, o kernel.Options) (kernel.Report, error) {
				got = &o
				return report, err
			},
		}
	}, context.Background(), "", append([]string{"--kernel"}, args...)...)
	return r, got
}

func TestChaosKernelTable(t *testing.T) {
	got, _ := kernelWith(t, fakeReport(), nil)
	assert.Equal(t, result{0, `Linux 6.1.0-56-cloud-amd64 (Debian 6.1.192-2), QEMU 7.2.24

one
in 3s of the host, CLOCK_REALTIME moved by 2s and CLOCK_MONOTONIC by 3s; the largest step back was 1s

   GENERATOR           IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD    RECOVERY
✓  default, raw     12,345         3           0         0     12.35ms          1s    987.65ms  9 writes
✗  xid                  70         0           7         0          0s          0s          0s

✗ one, xid:
  7 duplicates
  it said? so
  first error: no?[2J

two

   GENERATOR           IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD    RECOVERY
!  default, raw          5         0           2         0          0s          0s       never  memory restored without the call
-  xid           does not apply: it keeps no state

all faults

   GENERATOR     ✓ FAULTS
!  default, raw         1  ! two
✗  xid                  0  ✗ one

- gone was not run: the proxy refuses it
- three was not run: there is no nbdkit
1 ✓, 1 ✗, 1 !, 2 -; ! has duplicates that are documented; 1 of the ✗ are of peers, which do not count for the exit code
`, ""}, got)
}

// A broken promise of tickflake, or of the user's program, is the exit code; a peer's is not.
func TestChaosKernelExitCode(t *testing.T) {
	for group, code := range map[kernel.Group]int{kernel.Ours: 1, kernel.Program: 1, kernel.Peers: 0} {
		report := kernel.Report{Rows: []kernel.Row{{Fault: "one", Subject: "it", Group: group, Broken: []string{"2 duplicates"}}}}
		for _, format := range []string{"table", "json", "junit"} {
			got, _ := kernelWith(t, report, nil, "--format", format)
			assert.Equal(t, code, got.code, "%s, %s", group, format)
			assert.Contains(t, got.out, "2 duplicates")
			assert.Empty(t, got.err)
		}
	}
	name := kernel.Faults()[0].Name
	got, _ := kernelWith(t, kernel.Report{Skipped: []kernel.Skip{{Fault: name, Why: "no disk"}}}, nil, "--fault", name)
	assert.Equal(t, 1, got.code, "the fault that was asked for was not run")
	assert.Equal(t, "tickflake: "+name+" was not run: no disk\n", got.err)
}

func TestChaosKernelFormats(t *testing.T) {
	got, _ := kernelWith(t, fakeReport(), nil, "--format", "json")
	var report kernel.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	assert.Equal(t, fakeReport(), report)

	broken := fakeReport()
	broken.Rows[0].Broken = []string{"it stalled"}
	got, _ = kernelWith(t, broken, nil, "--format", "junit")
	var all junitSuites
	require.NoError(t, xml.Unmarshal([]byte(got.out), &all))
	assert.Equal(t, []int{6, 1, 3}, []int{all.Tests, all.Failures, all.Skipped})
	require.Len(t, all.Suites, 3)
	assert.Equal(t, "it stalled", all.Suites[0].Cases[0].Failure.Message)
	assert.Nil(t, all.Suites[0].Cases[1].Failure, "a peer is no failure")
	assert.Contains(t, all.Suites[0].Cases[1].Note, "7 duplicates")
	assert.Equal(t, "memory restored without the call", all.Suites[1].Cases[0].Note)
	assert.Contains(t, all.Suites[1].Cases[1].Skipped.Message, "it keeps no state")
	assert.Contains(t, all.Suites[2].Cases[0].Skipped.Message, "there is no nbdkit")
}

func TestChaosKernelRunsWhatItIsAskedFor(t *testing.T) {
	_, options := kernelWith(t, fakeReport(), nil)
	assert.Equal(t, "found", options.Kernel.Version)
	assert.Empty(t, options.Faults, "all")
	assert.Empty(t, options.Subjects, "all")

	faults := kernel.Faults()
	_, options = kernelWith(t, fakeReport(), nil, "--fault", faults[0].Name+","+faults[1].Name, "--fault", faults[2].Name)
	assert.Equal(t, []string{faults[0].Name, faults[1].Name, faults[2].Name}, options.Faults)

	var ours []string
	other := ""
	for _, s := range kernel.Subjects() {
		if s.Group == kernel.Ours {
			ours = append(ours, s.Name)
		} else if s.Group == kernel.Peers {
			other = s.Name
		}
	}
	require.NotEmpty(t, ours)
	_, options = kernelWith(t, fakeReport(), nil, "--subject", "tickflake", "--subject", other, "--subject", ours[0])
	assert.Equal(t, append(ours, other), options.Subjects)

	_, options = kernelWith(t, fakeReport(), nil, "--program", binary, "--ordered", "--", "generate", "--count", "5")
	assert.Equal(t, []string{"generate", "--count", "5"}, options.Args)
	assert.Equal(t, binary, options.Program)
	assert.True(t, options.Ordered)
}

func TestChaosKernelUsage(t *testing.T) {
	fault := kernel.Faults()[0].Name
	for line, want := range map[string]string{
		"--kernel --strategy wait --clock raw":         "--strategy, --clock cannot be used with --kernel: *",
		"--kernel --script -":                          "--script cannot be used with --kernel: *",
		"--kernel --no-lease":                          "--no-lease cannot be used with --kernel: *",
		"--kernel --fault F5":                          "--fault: no fault \"F5\" of a real kernel; *",
		"--kernel --subject nosuch":                    "--subject: no generator \"nosuch\"; *",
		"--kernel --subject tickflake --program x":     "--subject cannot be used with --program, which is the only subject",
		"--kernel --ordered":                           "--ordered cannot be used without --program",
		"--kernel --program=":                          "--program: want the path of a program",
		"--kernel x":                                   "unknown command \"x\" for \"tickflake chaos\"",
		"--kernel -- x":                                "\"x\" stands after --, but there is no --program that gets it",
		"-- x":                                         "\"x\" stands after --, but there is no --program that gets it",
		"--subject tickflake --program x":              "--subject, --program cannot be used without --kernel",
		"--fault " + fault:                             "--fault: " + fault + " is a fault of a real kernel: give --kernel",
		"list --kernel F5":                             "--kernel lists all faults of the real kernel, and takes no arguments, got \"F5\"",
		"--kernel --fault " + fault + " --script x":    "--script cannot be used with --kernel: *",
		"--kernel --program x --fault " + fault + " y": "unknown command \"y\" for \"tickflake chaos\"",
	} {
		got := tickflake(append([]string{"chaos"}, strings.Fields(line)...)...)
		assert.Equal(t, 2, got.code, line)
		assert.Truef(t, matches("tickflake: "+want+"\nsee 'tickflake chaos*--help'\n", got.err), "%s: %s", line, got.err)
		assert.Empty(t, got.out)
	}
}

// What is missing is said before anything is started.
func TestChaosKernelIsMissing(t *testing.T) {
	fetched := false
	with := func(platform string, missing error) result {
		return chaosWith(func(k *chaos) {
			k.bench = bench{
				platform: platform,
				find:     func() (kernel.Kernel, error) { return kernel.Kernel{}, errors.New("no kernel") },
				fetch: func(context.Context, func(string)) (kernel.Kernel, error) {
					fetched = true
					return kernel.Kernel{Version: "fetched"}, missing
				},
				run: func(_ context.Context, o kernel.Options) (kernel.Report, error) {
					assert.Equal(t, "fetched", o.Kernel.Version)
					return kernel.Report{}, nil
				},
			}
		}, context.Background(), "", "--kernel")
	}
	got := with("darwin/arm64", nil)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "--kernel runs on linux/amd64 only, and this is darwin/arm64")
	assert.False(t, fetched)

	got = with(kernelPlatform, errors.New("cannot download it: no apt-get"))
	assert.Equal(t, result{1, "", "tickflake: cannot download it: no apt-get\n"}, got)
	assert.True(t, fetched)
	assert.Equal(t, 0, with(kernelPlatform, nil).code)

	fetched = false
	t.Setenv(kernelVariable, "/nosuch")
	assert.Equal(t, result{1, "", "tickflake: no kernel\n"}, with(kernelPlatform, nil))
	assert.False(t, fetched, "another kernel than the one that was asked for")
}

func TestChaosKernelInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	report := fakeReport()
	report.Skipped = nil
	got := chaosWith(func(k *chaos) {
		k.bench = bench{platform: kernelPlatform, find: func() (kernel.Kernel, error) { return kernel.Kernel{}, nil },
			run: func(ctx context.Context, o kernel.Options) (kernel.Report, error) {
				cancel(cli.Interruption{Signal: syscall.SIGINT})
				return report, ctx.Err()
			}}
	}, ctx, "", "--kernel", "--format", "json")
	assert.Equal(t, 130, got.code)
	assert.Regexp(t, `^tickflake: interrupted; 2 of \d+ faults done\n$`, got.err)
	assert.Contains(t, got.out, `"rows":[{`, "what was done is written")
}

// A path that the machine cannot run is found before it boots.
func TestChaosKernelProgram(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	header := func(name string, at int, is byte) string {
		content := make([]byte, 64)
		copy(content, "\x7fELF\x02\x01\x01") // 64 bits, little-endian
		copy(content[16:], "\x02\x00\x3e\x00\x01")
		content[25] = 0x10 // the entry
		content[at] = is
		return file(name, string(content), 0o755)
	}
	for path, want := range map[string]string{
		header("arm64", 18, 183):                     "is built for EM_AARCH64 with ELFCLASS64: the virtual machine needs EM_X86_64",
		header("freebsd", 7, 9):                      "is built for ELFOSABI_FREEBSD: the virtual machine runs Linux",
		header("object", 16, 1):                      "is no program but a library or an object file (ET_REL)",
		header("library", 25, 0):                     "is no program but a library or an object file",
		filepath.Join(dir, "nosuch"):                 "no such file or directory",
		dir:                                          "is not a regular file",
		file("plain", "x", 0o644):                    "is not executable: chmod +x",
		file("script", "#!/bin/sh\necho 1\n", 0o755): "is not an ELF file: the virtual machine has no shell",
		file("empty", "", 0o755):                     "is not an ELF file",
		file("cut", "\x7fELF", 0o755):                "is not an ELF file",
		file("mac", "\xcf\xfa", 0o755):               "is not an ELF file",
	} {
		got, options := kernelWith(t, kernel.Report{}, nil, "--program", path)
		assert.Equal(t, 1, got.code, path)
		assert.Contains(t, got.err, "tickflake: --program: ")
		assert.Contains(t, got.err, want)
		assert.Nil(t, options, "nothing is run")
	}
	got, options := kernelWith(t, kernel.Report{}, nil, "--program", header("sound", 16, 2))
	assert.Equal(t, 0, got.code, got.err)
	assert.NotNil(t, options)
}
