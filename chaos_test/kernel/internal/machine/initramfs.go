package machine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// initramfs writes the file system that the kernel begins with.
func initramfs(w io.Writer, c Config) error {
	files := map[string]string{} // path in the machine: path on the host
	programs := maps.Clone(c.Files)
	if programs == nil {
		programs = map[string]string{}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	programs["/init"] = self
	for to, from := range programs {
		files[path.Join("/", to)] = from
		libs, err := libraries(from)
		if err != nil {
			return err
		}
		maps.Copy(files, libs)
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
	dirs := map[string]bool{"/": true}
	for _, d := range []string{"/dev", "/proc", "/sys", "/tmp"} {
		if err := addDir(out, dirs, d); err != nil {
			return err
		}
	}
	// Without a console, what process 1 prints before it has mounted /dev is lost.
	err = out.WriteHeader(&cpio.Header{Name: "dev/console", Mode: cpio.TypeChar | 0o600, Links: 1, DeviceID: 5<<8 | 1})
	if err != nil {
		return err
	}
	for _, to := range slices.Sorted(maps.Keys(files)) {
		if err := addDir(out, dirs, path.Dir(to)); err != nil {
			return err
		}
		if err := addFile(out, to, files[to]); err != nil {
			return err
		}
	}
	if err := add(out, "/modules", 0o644, int64(list.Len()), strings.NewReader(list.String())); err != nil {
		return err
	}
	return out.Close()
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

// libraryDirs is where Debian's and Red Hat's ld.so look without a configuration.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// libraries returns the loader and the shared libraries of a program, and theirs. A file
// that is no program has none.
func libraries(program string) (map[string]string, error) {
	found := map[string]string{}
	todo := []string{program}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		f, err := elf.Open(name)
		if bad := (*elf.FormatError)(nil); errors.As(err, &bad) || errors.Is(err, io.EOF) {
			continue // a script, or data
		}
		if err != nil {
			return nil, err
		}
		needed, loader, err := dynamic(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if loader != "" {
			found[loader] = loader
		}
		for _, lib := range needed {
			if slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(p string) bool { return path.Base(p) == lib }) {
				continue
			}
			p, err := library(lib)
			if err != nil {
				return nil, fmt.Errorf("%s needs %w", name, err)
			}
			found[p] = p
			todo = append(todo, p)
		}
	}
	return found, nil
}

// dynamic returns the libraries of a program, and its loader.
func dynamic(f *elf.File) (needed []string, loader string, err error) {
	if f.Machine != elf.EM_X86_64 {
		return nil, "", fmt.Errorf("a program for %s, and the machine is x86_64", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(io.LimitReader(p.Open(), 4<<10))
			if err != nil {
				return nil, "", err
			}
			loader = strings.TrimRight(string(b), "\x00")
		}
	}
	needed, err = f.ImportedLibraries()
	return needed, loader, err
}

func library(name string) (string, error) {
	for _, dir := range libraryDirs {
		p := filepath.Join(dir, name)
		if s, err := os.Stat(p); err == nil && s.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", fmt.Errorf("the library %s, which is not in %s", name, strings.Join(libraryDirs, " or "))
}
