// Package directory keeps cells in plain files: it gives any number of processes on one
// host their node numbers, without a server.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a path or a file: URL; import
//     this package for it.
//   - [Open]: opens a directory by its path.
//   - [DefaultPath]: the directory of the user that the process runs as.
//   - [ErrUnfit]: the directory belongs to another user, or cannot be made or read.
//
// The URL is file:PATH or file:///ABSOLUTE/PATH, and a bare path is short for it;
// ?namespace=NAME of a URL is the directory NAME below. Nothing in it is percent-encoded.
//
// A directory serves one fleet, the processes that share its node numbers, and one
// host. Do not share it between hosts.
//
// Reading a cell opens one file, listing reads the names of all files and opens those of
// the cells listed; a Swap syncs a file and the directory. Nothing stays open but locks.
//
// # To lose nothing
//
// Put it on a local file system that is still there after a restart: not on tmpfs, and not
// on NFS, SMB or another that is shared over a network, whose locks and whose order
// of writes cannot be relied on. Two containers can share one that is mounted from
// the same host. A disk that acknowledges writes that it has not made loses the last ones
// in a power cut.
//
// Do not restore a directory from a backup or a snapshot: the cells are then in the past,
// and IDs are issued twice. For the same reason, do not delete cells.
//
// The directory must belong to the user that the process runs as, and no other user
// may write to it; [Open] makes it with mode 0700. On Windows, that is left to the
// directory that it is in.
//
// # What is in it
//
// The cell node/0000007 has three files, in whose names + stands for the slash:
// node+0000007.cell, which is text, as follows; and two empty files that are only there
// to be locked: node+0000007.swap while the cell is written, and node+0000007.hold while
// a process holds it.
//
//	tickflake-cell 1 crc64=50b31d07b02e7868 key=node/0000007 version=12 length=9
//	the value
//
// A cell is written to node+0000007.cell.tmp, synced, renamed, and the directory is synced,
// before Swap returns. Whenever a process or its host stops in between, the cell is the
// old one or the new one, as a whole.
//
// The checksum is over all that follows it. A cell that cannot be read as it was written
// is a [*stores.DamagedError], and nothing overwrites it, as it may have been the only
// record of the IDs that were issued. Versions grow by random steps, so that one that was
// lost with a restored backup does not come again.
package directory
