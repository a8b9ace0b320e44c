package directory

import (
	"context"
	"fmt"
	"os"

	"github.com/tickflake/tickflake/stores"
)

// keeper says where a file system keeps its files.
type keeper uint8

const (
	local     keeper = iota
	network          // on another host
	memory           // lost when this host restarts
	program          // a program decides
	container        // in the container's own layer
)

// ask asks Linux for the kind of the file system; on other systems it finds nothing.
// A network file system forgets: a host reads a cell from its own cache, also after it has
// locked the cell, and then replaces a newer one that another host has written.
func (s *files) ask(ctx context.Context) (stores.Durability, error) {
	return place(ctx, s.path, func() (d stores.Durability, err error) {
		name, kept, err := fileSystem(s.path)
		switch kept {
		case network:
			d.Forgets = []string{fmt.Sprintf("%s is on %s, a network file system, where hosts overwrite newer cells of each other: name a directory on a disk of this host, or a server", s.path, name)}
		case memory:
			d.Risks = []string{fmt.Sprintf("%s is on %s, in memory, and lost when this host restarts: name a directory on a disk", s.path, name)}
		case container:
			d.Risks = []string{fmt.Sprintf("%s is in the container's own layer, and lost with the container: name a directory on a volume", s.path)}
		case program:
			d.Unknown = []string{fmt.Sprintf("%s is on %s, and a program decides where its files are: if it is on another host, name a directory on a disk of this host", s.path, name)}
		}
		return d, failedFile("look at its file system", err)
	})
}

// private returns why no other host or container is likely to see the directory, so that each has a directory
// of its own and issues the IDs of the others: the process runs under Kubernetes, or the directory
// is in its container's own layer. Without such a sign, which only Linux shows, it returns "".
func (s *files) private(ctx context.Context) string {
	sign := ""
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		sign = "this process runs under Kubernetes"
	}
	own, err := wait(ctx, s.path, func() (bool, error) {
		_, kept, err := fileSystem(s.path)
		return kept == container, err
	})
	if err == nil && own {
		sign = "it is in the container's own layer"
	}
	if sign == "" {
		return ""
	}
	return fmt.Sprintf("%s is a directory, and %s: each pod with a directory of its own issues the IDs of the others; take k8s://NAMESPACE or s3://BUCKET", s.path, sign)
}

// The kinds of file systems that are not a disk of the host, by the number that statfs
// gives, as linux/magic.h and Lustre's sources name them.
var kinds = map[uint32]struct {
	name string
	kept keeper
}{
	0x00006969: {"NFS", network},
	0x0000517b: {"SMB", network},
	0xfe534d42: {"SMB", network},
	0xff534d42: {"SMB", network},
	0x01021997: {"9P", network},
	0x00c36400: {"Ceph", network},
	0x5346414f: {"AFS", network},
	0x6b414653: {"AFS", network},
	0x73757245: {"Coda", network},
	0x0bd00bd0: {"Lustre", network},
	0x01021994: {"tmpfs", memory},
	0x858458f6: {"ramfs", memory},
	0x65735546: {"FUSE", program},
	0x794c7630: {"overlayfs", container},
}

// statfs returns the number of a file system, which only Linux gives. A test replaces it.
var statfs = func(string) (uint32, error) { return 0, nil }

// fileSystem returns the name of a file system that is not local, and where it keeps its
// files.
func fileSystem(path string) (name string, kept keeper, err error) {
	number, err := statfs(path)
	return kinds[number].name, kinds[number].kept, err
}
