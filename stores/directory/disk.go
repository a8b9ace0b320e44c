package directory

import "os"

// disk has the steps of a write, so that a test can make each of them fail.
type disk struct {
	create  func(path string) (*os.File, error) // for writing, empty
	write   func(f *os.File, data []byte) error
	sync    func(f *os.File) error
	rename  func(from, to string) error // replaces
	remove  func(path string) error
	syncDir func(path string) error
	lock    func(path string) (unlock func(), err error) // errBusy: another has locked it
}

var realDisk = disk{
	create: func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, ownerOnly)
	},
	write: func(f *os.File, data []byte) error {
		_, err := f.Write(data)
		return err
	},
	sync:    (*os.File).Sync,
	rename:  rename,
	remove:  os.Remove,
	syncDir: syncDir,
	lock:    tryLock,
}
