package machine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/stretchr/testify/require"
)

// module writes a kernel module that depends on others.
func module(t *testing.T, dir, name string, depends ...string) {
	t.Helper()
	info := "license=GPL\x00depends=" + strings.Join(depends, ",") + "\x00name=" + name + "\x00"
	object(t, filepath.Join(dir, name+".ko"), elf.EM_X86_64, section{".modinfo", elf.SHT_PROGBITS, 0, info})
}

type section struct {
	name string
	kind elf.SectionType
	link uint32
	data string
}

// object writes an ELF file with these sections.
func object(t *testing.T, file string, machine elf.Machine, sections ...section) {
	t.Helper()
	const size = 64 // of the header of a file, and of a section
	headers := make([]elf.Section64, 1)
	names, content := "\x00", ""
	sections = append(sections, section{name: ".names", kind: elf.SHT_STRTAB})
	for i, s := range sections {
		name := uint32(len(names))
		names += s.name + "\x00"
		if i == len(sections)-1 {
			s.data = names
		}
		headers = append(headers, elf.Section64{Name: name, Type: uint32(s.kind), Off: uint64(size + len(content)), Size: uint64(len(s.data)), Link: s.link, Addralign: 1})
		content += s.data
	}
	var b bytes.Buffer
	write := func(v any) { require.NoError(t, binary.Write(&b, binary.LittleEndian, v)) }
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
		Type:  uint16(elf.ET_REL), Machine: uint16(machine), Version: 1, Shoff: uint64(size + len(content)),
		Ehsize: size, Shentsize: size, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	})
	b.WriteString(content)
	write(headers)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
}

// needs writes a program that needs a library.
func needs(t *testing.T, file, library string) {
	t.Helper()
	var dynamic bytes.Buffer
	require.NoError(t, binary.Write(&dynamic, binary.LittleEndian, []elf.Dyn64{{Tag: int64(elf.DT_NEEDED), Val: 1}, {}}))
	object(t, file, elf.EM_X86_64, section{".dynamic", elf.SHT_DYNAMIC, 2, dynamic.String()}, section{".dynstr", elf.SHT_STRTAB, 0, "\x00" + library + "\x00"})
}

func bases(files []string) (names []string) {
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

func TestModulesComeAfterThoseTheyNeed(t *testing.T) {
	dir := t.TempDir()
	module(t, dir+"/net", "net-d", "c_c", "b")
	module(t, dir+"/lib", "c-c", "a")
	module(t, dir, "b", "a")
	module(t, dir, "a")
	module(t, dir, "unused")

	files, err := modules(dir, []string{"net_d", "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"a.ko", "c-c.ko", "b.ko", "net-d.ko"}, bases(files))
	files, err = modules(dir, []string{"b", "net-d"})
	require.NoError(t, err)
	require.Equal(t, []string{"a.ko", "b.ko", "c-c.ko", "net-d.ko"}, bases(files))
	files, err = modules("/no/such/directory", nil)
	require.NoError(t, err)
	require.Empty(t, files)

	_, err = modules(dir, []string{"e"})
	require.ErrorContains(t, err, "module e is not in "+dir)
	require.ErrorIs(t, err, ErrNoModule)
	module(t, dir, "f", "g")
	_, err = modules(dir, []string{"f"})
	require.ErrorContains(t, err, "module g, needed by f, is not in "+dir)
	module(t, dir, "loop1", "loop2")
	module(t, dir, "loop2", "loop1")
	_, err = modules(dir, []string{"loop1"})
	require.NoError(t, err, "a circle ends")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.ko"), []byte("text"), 0o600))
	_, err = modules(dir, []string{"a"})
	require.ErrorContains(t, err, "a.ko")
}

// unpack reads an initramfs: the content of its files, "dir" and "device".
func unpack(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{"": "dir"}
	in := cpio.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		require.NotContains(t, files, h.Name, "twice")
		require.Contains(t, files, filepath.ToSlash(filepath.Dir("/" + h.Name))[1:], "a directory comes before its files")
		switch {
		case h.Mode&cpio.ModeType == cpio.TypeDir:
			files[h.Name] = "dir"
		case h.Mode&cpio.ModeType == cpio.TypeChar:
			files[h.Name] = "device"
		default:
			b, err := io.ReadAll(in)
			require.NoError(t, err)
			files[h.Name] = string(b)
		}
	}
}

func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	module(t, dir, "a")
	module(t, dir, "virtio_blk", "virtio")
	module(t, dir, "virtio_net", "virtio")
	module(t, dir, "virtio_pci", "virtio")
	module(t, dir, "virtio")
	script := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/init\n"), 0o700))
	c := Config{Kernel: Kernel{Modules: dir}, Init: script, Files: map[string]string{"/x/y/data": script, "program": script}, Modules: []string{"a"}}
	var b bytes.Buffer
	require.NoError(t, initramfs(&b, c))
	files := unpack(t, &b)
	for _, f := range []string{"init", "program", "x/y/data"} {
		require.Equal(t, "#!/init\n", files[f], f)
	}
	for _, d := range []string{"dev", "proc", "sys", "tmp", "x/y"} {
		require.Equal(t, "dir", files[d], d)
	}
	require.Equal(t, "device", files["dev/console"])
	require.Equal(t, "/lib/modules/a.ko\n", files["modules"])
	require.Contains(t, files["lib/modules/a.ko"], "license=GPL")

	c.Disks, c.Network = []Disk{{}}, true
	b.Reset()
	require.NoError(t, initramfs(&b, c))
	require.Equal(t, "a virtio virtio_pci virtio_blk virtio_net",
		strings.Join(strings.Fields(strings.NewReplacer("/lib/modules/", "", ".ko", "").Replace(unpack(t, &b)["modules"])), " "))

	c.Files["lost"] = filepath.Join(dir, "lost")
	require.ErrorContains(t, initramfs(io.Discard, c), filepath.Join(dir, "lost"))
	c.Files = map[string]string{"dir": dir}
	require.Error(t, initramfs(io.Discard, c))
	arm := filepath.Join(dir, "arm")
	object(t, arm, elf.EM_AARCH64)
	c.Files = map[string]string{"arm": arm}
	require.ErrorContains(t, initramfs(io.Discard, c), "EM_AARCH64")
}

func TestLibrariesOfLibraries(t *testing.T) {
	dir := t.TempDir()
	old := libraryDirs
	libraryDirs = []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	t.Cleanup(func() { libraryDirs = old })
	program, one, two := filepath.Join(dir, "program"), filepath.Join(dir, "b", "one.so"), filepath.Join(dir, "a", "two.so")
	needs(t, program, "one.so")
	needs(t, one, "two.so")
	needs(t, two, "one.so")
	libs, err := libraries(program)
	require.NoError(t, err)
	require.Equal(t, map[string]string{one: one, two: two}, libs)
	require.NoError(t, os.Remove(two))
	_, err = libraries(program)
	require.ErrorContains(t, err, one+" needs the library two.so")
}

func TestLibrariesOfAProgram(t *testing.T) {
	const program = "/bin/sh" // dynamic on Debian
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the programs of this host have no libraries for the machine")
	}
	libs, err := libraries(program)
	require.NoError(t, err)
	if len(libs) == 0 {
		t.Skip(program + " is static")
	}
	require.Contains(t, libs, "/lib64/ld-linux-x86-64.so.2")
	require.Contains(t, strings.Join(slices.Collect(maps.Values(libs)), " "), "/libc.so.6")
	for _, p := range slices.Collect(maps.Values(libs)) {
		require.FileExists(t, p)
	}
}

// install makes an empty kernel.
func install(t *testing.T, dir, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "boot"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib", "modules", version), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "boot", "vmlinuz-"+version), nil, 0o600))
}

func TestFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*")
	t.Setenv("TICKFLAKE_KERNEL", dir)
	_, err := Find()
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "linux-image-cloud-amd64")

	install(t, dir, "6.1.0-9-cloud-amd64")
	install(t, dir, "6.1.0-56-cloud-amd64")
	install(t, dir, "6.9.0-1-amd64")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "boot", "vmlinuz-7.1.0-1-cloud-amd64"), nil, 0o600), "an image without modules")
	k, err := Find()
	require.NoError(t, err)
	require.Equal(t, Kernel{
		Image:   filepath.Join(dir, "boot", "vmlinuz-6.1.0-56-cloud-amd64"),
		Modules: filepath.Join(dir, "lib", "modules", "6.1.0-56-cloud-amd64"),
		Version: "6.1.0-56-cloud-amd64",
	}, k)
}

func TestHostWithoutQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	want := "qemu-system-x86"
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		want = "linux/amd64"
	}
	_, err := Boot(t.Context(), Config{})
	require.ErrorContains(t, err, want)
	_, err = Version(t.Context())
	require.ErrorContains(t, err, want)
	_, err = Fetch(t.Context(), nil)
	require.ErrorContains(t, err, "linux-image-cloud-amd64")
}

func TestTail(t *testing.T) {
	var log bytes.Buffer
	tl := tail{out: &log}
	for i := range 3 * tailLines {
		tl.Write([]byte{'l', byte('0' + i%10)})
		tl.Write([]byte("x\r\n\r\n"))
	}
	tl.Write([]byte("end"))
	tl.flush()
	lines := strings.Split(tl.last(), "\n")
	require.Len(t, lines, tailLines)
	require.Equal(t, []string{"l8x", "l9x", "end"}, lines[tailLines-3:])
	require.Equal(t, 3*tailLines*7+3, log.Len())
	tl.Write(bytes.Repeat([]byte("y"), 1<<20))
	require.Less(t, len(tl.part), 1<<20)
}
