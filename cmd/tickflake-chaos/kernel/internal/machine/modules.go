package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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
