package machine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

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
	var order []string
	seen := map[string]bool{}
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

// depends reads the direct dependencies of a module. No modules.dep exists where depmod
// has not run.
func depends(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for field := range bytes.SplitSeq(info, []byte{0}) {
		if d, ok := strings.CutPrefix(string(field), "depends="); ok && d != "" {
			return strings.Split(d, ","), nil
		}
	}
	return nil, nil
}
