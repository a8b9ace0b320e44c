package directory

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	if memory, err := os.MkdirTemp("/dev/shm", "tickflake"); err == nil { // where a file that replaces another moves in the list
		root = memory
		defer os.RemoveAll(memory) //nolint:errcheck // it is in memory
	}
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store { return below(t, root, namespace) })
}

// below opens a namespace below a directory.
func below(t testing.TB, root, namespace string) stores.Store {
	path, err := pathOf("file:" + root + "?namespace=" + namespace)
	require.NoError(t, err)
	s, err := openPath(t.Context(), path)
	require.NoError(t, err)
	return s
}

// Open makes a directory and its parents, which stays the same directory wherever the process goes. It and its files
// are the user's alone. Files of others are no cells, and stay.
func TestFiles(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	s := opened(t, filepath.Join("a", "b", "state"), nil)
	t.Chdir(t.TempDir())
	assert.Equal(t, filepath.Join(home, "a", "b", "state"), s.path)
	written(t, s, stores.Cell{Key: key}, "value")
	unlock, err := s.lockCell(t.Context(), key)
	require.NoError(t, err)
	unlock()
	for name, mode := range map[string]os.FileMode{"../..": 0o700, "..": 0o700, ".": 0o700, "node+0000007.cell": 0o600, "node+0000007.hold": 0o600, "node+0000007.swap": 0o600} {
		info, err := os.Stat(filepath.Join(s.path, name))
		require.NoError(t, err)
		assert.True(t, !checkMode || info.Mode().Perm() == mode, "%s: %v", name, info.Mode())
	}

	others := []string{".cell", "+.cell", "A.cell", "a++b.cell", "x.cell~", "README", "X.cell.tmp", "000000７.cell", "a:b.cell"}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(s.path, name), []byte("other"), 0o600))
	}
	s = opened(t, s.path, nil)
	cells, err := s.List(t.Context(), "", "\xff", 9)
	require.NoError(t, err)
	assert.Len(t, cells, 1)
	entries, err := os.ReadDir(s.path)
	require.NoError(t, err)
	assert.Len(t, entries, 3+len(others))
}

// Kubernetes widens the mode at each start of a pod with fsGroup. Open says so, and takes the right away from the group.
func TestOpenAfterFSGroup(t *testing.T) {
	if !checkMode {
		t.Skip("this system has no modes")
	}
	log := new(bytes.Buffer)
	s := opened(t, state(t), nil)
	for _, cell := range []string{key, "node/0000008"} { // it is empty, and then it has cells
		require.NoError(t, os.Chmod(s.path, 0o770|os.ModeSetgid))
		log.Reset()
		again, err := stores.Open(t.Context(), s.path, stores.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		require.NoError(t, err)
		require.NoError(t, again.Close())
		info, err := os.Stat(s.path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		assert.Contains(t, log.String(), "fsGroup")
		written(t, s, stores.Cell{Key: cell}, "value")
	}
}

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cases := map[string]string{
		"":                            "has no name",
		file:                          "is not a directory",
		filepath.Join(file, "state"):  "cannot be looked at",
		filepath.Join(root, "a\x00b"): "control character",
		filepath.Join(root, strings.Repeat("too long", 1000)): "cannot be looked at",
	}
	for mode, want := range map[os.FileMode]string{0o755: "", 0o770: "has the mode 0770", 0o707: "has the mode 0707", 0o720: "has the mode 0720"} {
		dir := filepath.Join(root, mode.String())
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600)) // so no store has made it
		require.NoError(t, os.Chmod(dir, mode))
		if checkMode {
			cases[dir] = want
		}
	}
	for path, want := range cases {
		s, err := openPath(t.Context(), path)
		if want == "" {
			assert.NoError(t, err, "others may look")
			continue
		}
		assert.Nil(t, s, path)
		assert.ErrorIs(t, err, ErrUnfit, path)
		assert.ErrorContains(t, err, want)
		assert.True(t, path == "" || strings.Count(err.Error(), path) <= 1, "%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openPath(ctx, root)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "directory "+root+": open: context canceled")
}

// uses are the ways to use the cell of the key.
func uses(t *testing.T, s *files) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = s.Read(t.Context(), key)
	_, errs["list"] = s.List(t.Context(), "", "\x7f", 9)
	_, errs["swap"] = s.Swap(t.Context(), key, 0, []byte("new"))
	_, errs["late swap"] = s.Swap(t.Context(), key, 12, []byte("new"))
	unlock, err := s.lockCell(t.Context(), key)
	if errs["lock"] = err; err == nil {
		unlock()
	}
	return errs
}

func TestRemovedDirectory(t *testing.T) {
	s := opened(t, state(t), nil)
	written(t, s, stores.Cell{Key: key}, "value")
	require.NoError(t, os.RemoveAll(s.path))
	for op, err := range uses(t, s) {
		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.ErrorContains(t, err, map[string]string{"lock": "was the directory removed while it was in use?"}[op])
		assert.Equal(t, op != "swap" && op != "lock", stores.KindOf(err) == stores.Permanent, "%s: %v", op, err)
		assert.NotErrorIs(t, err, stores.ErrConflict)
		assert.Equal(t, 1, strings.Count(err.Error(), s.path), "%v", err)
	}
	assert.NoDirExists(t, s.path)
}

// A file of one cell that cannot be read or used is an error of this cell alone, is left as it is, and hides no other cell.
func TestDamagedFiles(t *testing.T) {
	check := func(t *testing.T, file string, data []byte, want map[string]string) {
		s := opened(t, state(t), nil)
		path := filepath.Join(s.path, file)
		if data == nil {
			require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
		} else {
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
		good := written(t, s, stores.Cell{Key: "node/0000006"}, "good")
		last := written(t, s, stores.Cell{Key: "node/0000008"}, "good")
		for range 2 { // before and after a restart
			s = opened(t, s.path, nil)
			for op, err := range uses(t, s) {
				says, damaged := want[op]
				if !damaged {
					assert.True(t, err == nil || op == "late swap" && stores.KindOf(err) == stores.Transient, "%s: %v", op, err)
					continue
				}
				torn := new(stores.DamagedError)
				require.ErrorAs(t, err, &torn, op)
				assert.Equal(t, key, torn.Key)
				assert.True(t, strings.HasPrefix(torn.Problem, says), "%s: %s", op, torn.Problem)
				assert.Equal(t, 1, strings.Count(err.Error(), s.path), "%v", err)
				assert.ErrorIs(t, err, stores.ErrDamaged)
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			if _, cell := want["read"]; !cell {
				return // the swap has written it
			}
			cells, _ := s.List(t.Context(), "", "\x7f", 9)
			assert.Equal(t, []stores.Cell{good, last}, cells)
		}
		if data != nil {
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(data), string(left), "it was overwritten")
		}
	}
	for kind, ops := range map[string]string{cellFile: "read list swap late-swap", swapFile: "swap", holdFile: "lock", tempFile: "swap"} {
		t.Run(kind, func(t *testing.T) {
			want := map[string]string{}
			for op := range strings.FieldsSeq(ops) {
				want[strings.ReplaceAll(op, "-", " ")] = "its file cannot be used"
			}
			check(t, "node+0000007"+kind, nil, want)
		})
	}
	for name, torn := range tornStates() {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			for _, op := range []string{"read", "list", "swap", "late swap"} {
				want[op] = "node+0000007.cell: " + torn[1]
			}
			check(t, "node+0000007.cell", []byte(torn[0]), want)
		})
	}
}

func TestURLs(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	good := map[string]string{
		"ids": "ids", "./i.d": "i.d", "file:i.d": "i.d", "file:i:d": "i:d", "file:x?namespace=Or-der_S": "x/=or-der_=s", filepath.Join(root, "a"): "a",
		"file://" + root + "/b c?namespace=n": "b c/n", "file:" + root + "/b%20c": "b%20c",
	}
	for url, want := range good {
		if runtime.GOOS == "windows" && strings.Contains(want, ":") {
			continue
		}
		s, err := stores.Open(t.Context(), url)
		require.NoError(t, err, url)
		assert.Equal(t, filepath.Join(root, filepath.FromSlash(want)), s.(*files).path, url)
		require.NoError(t, s.Close())
	}
	storetest.TestURLs(t, func(ctx context.Context, url string) (stores.Store, error) { return stores.Open(ctx, url) }, "file:ids", map[string]string{
		"file:": "names no directory", "file://host/ids": "names a host", "file://host": "names a host", "file:?namespace=n": "names no directory",
		"file:~/ids": "want the path in full", "file:ids?other=1": "its only option is namespace=NAME",
	})
	for _, url := range []string{"/dev/null/ids", "i\nds", "file:ids\r\n", "a\x7fb"} {
		_, err := stores.Open(t.Context(), url)
		assert.ErrorIs(t, err, ErrUnfit)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestDefaultPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("this is about Linux, and not about %s", runtime.GOOS)
	}
	for _, tt := range []struct{ state, home, want string }{
		{"/of/mine", "", "/of/mine/tickflake"},
		{"", "/home/me", "/home/me/.local/state/tickflake"},
		{"relative", "/home/me", "/home/me/.local/state/tickflake"},
		{"", "", ""},
		{"", "relative", ""},
	} {
		t.Setenv("XDG_STATE_HOME", tt.state)
		t.Setenv("HOME", tt.home)
		path, err := DefaultPath()
		assert.Equal(t, tt.want, path)
		assert.Equal(t, tt.want == "", stores.KindOf(err) == stores.Permanent, "%v", err)
	}
}

// A new directory begins at a random number, which its layout's cell keeps, whatever the layout's size: later claims take the
// numbers after it, and go on from 0.
func TestFirstNode(t *testing.T) {
	drawn := map[int64]bool{}
	for _, spec := range []string{"41/10/12", "41/1/21", "41/0/22", "42/20/1"} {
		layout, err := snowflake.ParseLayout(spec)
		require.NoError(t, err)
		nodes := int64(1) << layout.NodeBits
		for range 8 {
			s := opened(t, state(t), nil)
			first := int64(-1)
			for i := range min(nodes, 3) {
				keeper, err := lease.Claim(t.Context(), s, lease.WithLayout(layout))
				require.NoError(t, err)
				defer keeper.Close()
				if i == 0 {
					first = keeper.Node()
				}
				assert.Equal(t, (first+i)%nodes, keeper.Node(), spec)
			}
			drawn[first] = true
		}
	}
	assert.Greater(t, len(drawn), 8)
}

// some is the text of a cell.
var some = []byte("12 the value")

func TestFormat(t *testing.T) {
	assert.Equal(t, "tickflake-cell 2 crc64=773bfcc0e18c288c key=node/0000007\n12 the value\n", string(encode(key, some)))
	longest := strings.Repeat("k", stores.MaxKey)
	data := encode(longest, engine.FormatCell(1<<63-1, []byte(strings.Repeat("\n", stores.MaxValue))))
	assert.LessOrEqual(t, len(data), maxFile)
	_, problem := parse(data, longest)
	assert.Empty(t, problem)
}

// tornStates are what a file can be after damage of every sort, and the beginning of
// what is said about it.
func tornStates() map[string][2]string {
	const sum = "its checksum does not match"
	good := string(encode(key, some))
	swap := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	return map[string][2]string{
		"empty":             {"", "it is empty"},
		"zeros":             {strings.Repeat("\x00", len(good)), "it is not a cell of tickflake"},
		"cut in the header": {good[:20], sum},
		"cut in the value":  {good[:len(good)-4], sum},
		"cut by one byte":   {good[:len(good)-1], sum},
		"twice":             {good + good, sum},
		"long":              {good + strings.Repeat("x", 1<<20), sum},
		"later format":      {swap("cell 2", "cell 3"), "its format is 3, and this program knows format 2 only"},
		"other format":      {"tickflake-cell 1 {}", "its format is 1"},
		"no fields":         {"tickflake-cell 2\n\n", sum},
		"no text":           {string(encode(key, nil)), sum},
		"a changed value":   {swap("the value", "the valve"), sum},
		"another's":         {string(encode("node/0000008", some)), "it is the cell node/0000008"},
		"no key":            {string(encode("A", some)), sum},
		"a line end":        {strings.ReplaceAll(good, "\n", "\r\n"), sum},
	}
}

// pretend makes the file system of every directory look like one of the number.
func pretend(t *testing.T, number uint32) {
	t.Helper()
	before := statfs
	statfs = func(string) (uint32, error) { return number, nil }
	t.Cleanup(func() { statfs = before })
}

// A network file system is refused, also by its number as a negative one, unless the URL accepts it. FUSE may be local and memory
// lasts as long as the host runs, so both are taken, and named.
func TestFileSystems(t *testing.T) {
	const forgets, risks, unknown, nothing = 0, 1, 2, 3
	for number, want := range map[uint32]int{
		0x6969: forgets, 0x517b: forgets, 0xfe534d42: forgets, 0xff534d42: forgets, 0x01021997: forgets, 0x00c36400: forgets,
		0x5346414f: forgets, 0x6b414653: forgets, 0x73757245: forgets, 0x0bd00bd0: forgets,
		0x01021994: risks, 0x858458f6: risks, 0x65735546: unknown, 0x794c7630: risks, 0xef53: nothing,
	} {
		pretend(t, number)
		path := t.TempDir()
		promises, err := stores.CheckDurability(t.Context(), opened(t, path, nil))
		require.NoError(t, err)
		for i, found := range [][]string{promises.Forgets, promises.Risks, promises.Unknown} {
			assert.Equal(t, i == want, len(found) == 1, "%x: %v", number, promises)
		}
		for _, url := range []string{path, "file:" + path, "file:" + path + "?namespace=n"} {
			_, err = stores.Open(t.Context(), url)
			assert.Equal(t, want == forgets, errors.Is(err, stores.ErrForgets), "%x: %v", number, err)
		}
		store, err := stores.Open(t.Context(), "file:"+path+"?forgetful=allow&namespace=n")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(path, "n"), store.(*files).path)
	}
}

// What is seen by one container only is said, and only then.
func TestPrivate(t *testing.T) {
	const ext4, overlayfs = 0xef53, 0x794c7630
	for _, tt := range []struct {
		system uint32
		pod    string
		want   string
	}{{ext4, "", ""}, {ext4, "10.0.0.1", "runs under Kubernetes"}, {overlayfs, "", "own layer"}, {overlayfs, "10.0.0.1", "own layer"}} {
		pretend(t, tt.system)
		t.Setenv("KUBERNETES_SERVICE_HOST", tt.pod)
		says := opened(t, t.TempDir(), nil).Traits().Private(t.Context())
		assert.Equal(t, tt.want == "", says == "", says)
		assert.Contains(t, says, tt.want)
	}
}

// The kernel is asked: procfs is none of the known kinds, and /dev/shm is in memory.
func TestFileSystem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("%s does not tell", runtime.GOOS)
	}
	name, kept, err := fileSystem("/proc")
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Equal(t, local, kept)
	_, _, err = fileSystem(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	if name, kept, err = fileSystem("/dev/shm"); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /dev/shm here")
	}
	require.NoError(t, err)
	assert.Equal(t, "tmpfs", name)
	assert.Equal(t, memory, kept)
}
