package main

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
)

// checkProgram reports why the virtual machine cannot run the program, before it boots.
func checkProgram(path string) error {
	is, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !is.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case is.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x", path)
	}
	file, err := elf.Open(path)
	switch {
	case isA[*fs.PathError](err):
		return err
	case err != nil:
		return fmt.Errorf("%s is not an ELF file: the virtual machine has no shell and no interpreter, so it runs compiled programs only", path)
	}
	defer file.Close()
	switch {
	case file.Machine != elf.EM_X86_64 || file.Class != elf.ELFCLASS64:
		return fmt.Errorf("%s is built for %s with %s: the virtual machine needs EM_X86_64 with ELFCLASS64 (GOOS=linux GOARCH=amd64)", path, file.Machine, file.Class)
	case file.OSABI != elf.ELFOSABI_NONE && file.OSABI != elf.ELFOSABI_LINUX:
		return fmt.Errorf("%s is built for %s: the virtual machine runs Linux (GOOS=linux GOARCH=amd64)", path, file.OSABI)
	case file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN || file.Entry == 0:
		return fmt.Errorf("%s is no program but a library or an object file (%s)", path, file.Type)
	}
	return nil
}
