package machine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// initramfs makes the file with which the kernel begins, and returns its name.
func initramfs(c Config) (name string, err error) {
	f, err := os.CreateTemp("", "tickflake-initramfs-")
	if err != nil {
		return "", err
	}
	if err = errors.Join(archive(f, c), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), err
}

func archive(w io.Writer, c Config) error {
	files := map[string]string{} // path in the machine: path on the host
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for to, from := range map[string]string{"/init": self, "/program": c.Program} {
		if from == "" {
			continue
		}
		libs, err := libraries(from)
		if err != nil {
			return err
		}
		maps.Copy(files, libs)
		files[to] = from
	}
	names := slices.Clone(c.Modules)
	if len(c.Disks) > 0 {
		names = append(names, "virtio_pci", "virtio_blk")
	}
	if c.Network {
		names = append(names, "virtio_pci", "virtio_net")
	}
	modules, err := modules(c.Kernel.Modules, names)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, m := range modules {
		to := "/lib/modules/" + filepath.Base(m)
		files[to] = m
		fmt.Fprintln(&list, to)
	}

	out := cpio.NewWriter(w)
	// Without a console, what process 1 prints before it has mounted /dev is lost.
	dirs := map[string]bool{"/": true}
	err = errors.Join(addDir(out, dirs, "/dev"), addDir(out, dirs, "/proc"), addDir(out, dirs, "/sys"), addDir(out, dirs, "/tmp"),
		out.WriteHeader(&cpio.Header{Name: "dev/console", Mode: cpio.TypeChar | 0o600, Links: 1, DeviceID: 5<<8 | 1}),
		add(out, "/modules", 0o644, int64(list.Len()), strings.NewReader(list.String())))
	for _, to := range slices.Sorted(maps.Keys(files)) {
		if err == nil {
			err = errors.Join(addDir(out, dirs, path.Dir(to)), addFile(out, to, files[to]))
		}
	}
	return errors.Join(err, out.Close())
}

func addDir(out *cpio.Writer, have map[string]bool, dir string) error {
	if have[dir] {
		return nil
	}
	have[dir] = true
	if err := addDir(out, have, path.Dir(dir)); err != nil {
		return err
	}
	return out.WriteHeader(&cpio.Header{Name: dir[1:], Mode: cpio.TypeDir | 0o755, Links: 2})
}

func addFile(out *cpio.Writer, to, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := f.Stat()
	if err != nil {
		return err
	}
	if !s.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", from)
	}
	return add(out, to, cpio.FileMode(s.Mode().Perm()), s.Size(), f)
}

func add(out *cpio.Writer, to string, mode cpio.FileMode, size int64, r io.Reader) error {
	if err := out.WriteHeader(&cpio.Header{Name: to[1:], Mode: cpio.TypeReg | mode, Links: 1, Size: size}); err != nil {
		return err
	}
	_, err := io.CopyN(out, r, size)
	return err
}

// libraries returns the loader and the shared libraries of a compiled program, as ldd lists them. One
// that is not dynamic has none. The error says why the machine cannot run the program.
func libraries(program string) (map[string]string, error) {
	f, err := elf.Open(program)
	if _, wrong := errors.AsType[*elf.FormatError](err); wrong {
		return nil, fmt.Errorf("%s is no compiled program (%w), and the machine has no shell and no interpreter", program, err)
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if f.Machine != elf.EM_X86_64 || f.Entry == 0 {
		return nil, fmt.Errorf("%s is %s for %s: the machine needs a program for EM_X86_64 and Linux (GOOS=linux GOARCH=amd64)", program, f.Type, f.Machine)
	}
	found := map[string]string{}
	if !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return found, nil
	}
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil || strings.Contains(string(out), "not found") {
		return nil, fmt.Errorf("the libraries of %s: ldd: %v: %s", program, err, out)
	}
	for _, word := range strings.Fields(string(out)) {
		if path.IsAbs(word) {
			found[word] = word
		}
	}
	return found, nil
}

// ErrNoModule is wrapped by the error of [Boot] for a kernel without a module that is needed.
var ErrNoModule = errors.New("the kernel does not have it; use Debian's cloud kernel")

// modules returns the files of kernel modules, each after those that it depends on.
func modules(dir string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(p), ".ko"); ok {
			files[moduleName(name)] = p
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	var order []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(builtin)) {
		seen[moduleName(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	var visit func(name, by string) error
	visit = func(name, by string) error {
		name = moduleName(name)
		if seen[name] {
			return nil
		}
		seen[name] = true
		file, ok := files[name]
		if !ok {
			return fmt.Errorf("module %s%s is not in %s: %w", name, by, dir, ErrNoModule)
		}
		depends, err := depends(file)
		if err != nil {
			return fmt.Errorf("module %s: %w", file, err)
		}
		for _, d := range depends {
			if err := visit(d, ", needed by "+name+","); err != nil {
				return err
			}
		}
		order = append(order, file)
		return nil
	}
	for _, n := range names {
		if err := visit(n, ""); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is how the kernel writes the name.
func moduleName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// depends reads the direct dependencies of a module from its section .modinfo: fields that end with
// a zero. No modules.dep exists where depmod has not run.
func depends(file string) ([]string, error) {
	module, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, rest, ok := bytes.Cut(module, []byte("\x00depends="))
	if !ok {
		return nil, errors.New("it does not say on which modules it depends")
	}
	names, _, _ := bytes.Cut(rest, []byte{0})
	return strings.FieldsFunc(string(names), func(r rune) bool { return r == ',' }), nil
}
