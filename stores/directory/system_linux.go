package directory

import "syscall"

func init() {
	statfs = func(path string) (uint32, error) {
		var s syscall.Statfs_t
		for {
			if err := syscall.Statfs(path, &s); err != syscall.EINTR {
				return uint32(s.Type), err
			}
		}
	}
}
