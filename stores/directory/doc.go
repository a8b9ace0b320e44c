// Package directory keeps cells in plain files: it gives any number of processes on one
// host their node numbers, without a server.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a path or a file: URL; import
//     this package for it.
//   - [DefaultPath]: the directory of the user that the process runs as.
//   - [ErrUnfit]: the directory belongs to another user, or cannot be made or read. On a system
//     without file locks, the error wraps [errors.ErrUnsupported].
//
// The URL is file:PATH or file:///ABSOLUTE/PATH, and a bare path is short for it;
// ?namespace=NAME of a URL is the directory NAME below it, with = and the small letter for each capital one, since many
// file systems ignore case. The URL has no percent-encoding.
//
// A directory serves one fleet on one host. Do not share it between hosts. Hosts with a directory
// each issue the same IDs sooner or later: a new directory begins at a random node number, which
// makes that rarer, not impossible.
//
// A Read opens one file, and syncs the directory if it finds a cell that may not be on the disk yet; a List reads the names of
// all files and opens those of the cells listed; a Swap syncs a file and the directory. So what Swap and Read return
// survives a power cut. Nothing stays open but locks. After an error of the disk, it is unknown whether the value was written.
//
// A method whose context ends returns soon, even if the disk hangs. The call then still waits for the
// disk, in a goroutine with a thread. A process has at most 16 such calls for each
// directory: further calls wait for one of them to end.
//
// # To lose nothing
//
// Put it on a local file system that survives a restart, such as ext4, xfs or btrfs: not on
// tmpfs, and not on NFS, SMB or another network file system, where a host that has locked a
// cell can still read an old one from its cache, and replace the newer one of another host.
// On Linux, stores.Open refuses a network file system, but for one with
// ?forgetful=allow in a file: URL: never let two hosts use such a directory. FUSE does not
// tell where its files are, so it is accepted. Two containers can share a directory that is mounted from
// the same host. A disk that acknowledges writes before they are made loses the last ones
// in a power cut.
//
// The directory must belong to the user that the process runs as, and no other user
// may write to it; stores.Open makes it with mode 0700, and restores that with a warning where only its group got the right to
// write, as from Kubernetes on a volume with fsGroup at each start of a pod. On a volume, name a directory of its own below the
// mount, whose root belongs to another user. On Windows, it inherits the
// access rights of its parent directory.
//
// # Files
//
// The cell node/0000007 has three files, with + for the slash in their names:
// node+0000007.cell, a text file as below; and two files for locks:
// node+0000007.swap is locked while the cell is written, and node+0000007.hold while
// a process holds it. No lock is ever
// broken: a process that was stopped in a write replaces the cell when it wakes. So the
// writers of that cell wait until their contexts end, with an error that says how to find the process.
//
//	tickflake-cell 2 crc64=773bfcc0e18c288c key=node/0000007
//	12 the value
//
// A cell is written to node+0000007.cell.tmp, synced, renamed, and the directory is synced,
// before Swap returns. If a process or its host stops in between, the cell is the
// whole old one or the whole new one, and the next Swap replaces the .tmp file.
//
// 12 is the version. The checksum covers the text after it. A cell that cannot be read as it was written, or whose other files
// cannot be used, is a [*stores.DamagedError], and is never overwritten. Other cells are not affected.
package directory
