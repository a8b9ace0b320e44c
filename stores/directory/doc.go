// Package directory keeps the cells of a lease.Store in plain files: it gives any
// number of processes on one host their node numbers, without a server.
//
// A directory serves one fleet, the processes that share its node numbers, and one
// host. Nothing in it may be shared by hosts.
//
// # Where it must be
//
// On a local file system that is still there after a restart: not on tmpfs, and not
// on NFS, SMB or another that is shared over a network, whose locks and whose order
// of writes cannot be relied on. Two containers can share one, if they have it from
// one host. The disk must have written what it says that it has written; most do,
// and those that lie about it lose the last writes in a power cut.
//
// Do not restore a directory from a backup or a snapshot while IDs that were issued
// since then are in use: the cells are then in the past, and so are the next IDs. For
// the same reason, do not delete cells.
//
// The directory must belong to the user that the process runs as, and no other user
// may write to it; [Open] makes it with mode 0700. On Windows, that is left to the
// directory that it is in.
//
// # What is in it
//
// For node number 7, there are 0000007.cell, which is text, as follows, and two files
// that are empty and only there to be locked: 0000007.swap while the cell is written,
// and 0000007.hold while a process holds it.
//
//	tickflake-cell 1 crc64=08fe573affc96e64 node=7 version=12 length=9
//	the value
//
// A cell is written to 0000007.cell.tmp, synced, renamed, and the directory is synced,
// before Swap returns. Whenever a process or its host stops in between, the cell is the
// old one or the new one, as a whole.
//
// A cell that cannot be read as it was written is a [*CorruptError], and nothing
// overwrites it, as it may have been the only record of what was issued.
package directory
