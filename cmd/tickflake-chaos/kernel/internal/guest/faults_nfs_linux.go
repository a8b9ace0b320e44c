package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores"
)

// nfsDir is where the machine mounts the directory that it exports to itself.
const nfsDir = "/nfs"

func nfsFaults() []Fault {
	return []Fault{{
		Name: "disk-nfs", About: "the directory of the state is on a mounted NFS, which must be refused unless the user accepts it",
		Kind: Disks, Own: true, Alone: true, Modules: []string{"nfsd", "nfsv4"}, Run: onNFS,
	}}
}

func onNFS(s *Stage) {
	export := filepath.Join(s.Dir, "export")
	s.must(os.MkdirAll(export, 0o755))
	if err := serveNFS(export); err != nil {
		s.must(fmt.Errorf("serve %s by NFS: %w", export, err))
	}
	s.must(os.MkdirAll(nfsDir, 0o755))
	if err := unix.Mount("127.0.0.1:/", nfsDir, "nfs4", 0, "vers=4.2,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1"); err != nil {
		s.must(fmt.Errorf("mount NFS: %w", err))
	}
	defer func() { _ = unix.Unmount(nfsDir, unix.MNT_DETACH) }()
	r := refusal(filepath.Join(nfsDir, "ids"))
	if r.Verdict.IDs > 0 { // it is the server's directory that has the cells
		if _, err := os.Stat(filepath.Join(export, "ids")); err != nil {
			s.must(fmt.Errorf("the directory on NFS is not the one that is exported: %w", err))
		}
	}
	s.host.send(Message{Result: &r})
}

// serveNFS makes the kernel's NFS server export a directory to this machine, as rpc.nfsd,
// exportfs and rpc.mountd do.
func serveNFS(export string) error {
	if err := mount("nfsd", "/proc/fs/nfsd", "nfsd"); err != nil {
		return err
	}
	// Where the server notes its clients. Without it, the grace period cannot be ended.
	if err := os.MkdirAll("/var/lib/nfs/v4recovery", 0o755); err != nil {
		return err
	}
	const (
		never = "2147483647" // when the answer expires
		flags = 0x2402       // insecure, no_subtree_check, fsid=: see exports(5)
	)
	for _, w := range []struct{ file, text string }{
		{"net/rpc/auth.unix.ip/channel", "nfsd 127.0.0.1 " + never + " machine"},
		{"net/rpc/nfsd.export/channel", fmt.Sprintf("machine %s %s %d 65534 65534 0", export, never, flags)},
		{"net/rpc/nfsd.fh/channel", `machine 1 \x00000000 ` + never + " " + export},
		{"fs/nfsd/versions", "-3 +4"}, // version 3 needs rpcbind
		{"fs/nfsd/threads", "2"},
		{"fs/nfsd/v4_end_grace", "Y"}, // no client of an earlier server comes back
	} {
		f, err := os.OpenFile("/proc/"+w.file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(w.text + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("write %q: %w", w.text, err)
		}
	}
	return nil
}

// refusal opens a directory that many hosts may share, which must be refused, and then with
// the user's consent.
func refusal(dir string) (r Result) {
	r.Subject = "directory store on NFS"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	broken := func(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }
	switch s, err := stores.Open(ctx, "file:"+dir); {
	case err == nil:
		broken("stores.Open accepts it")
		_ = s.Close()
	case !errors.Is(err, stores.ErrForgets) || stores.KindOf(err) != stores.Permanent:
		broken("stores.Open fails with an error of another kind: %v", err)
	default:
		r.Note = "refused: " + err.Error()
	}
	gen, err := generator.Open(ctx, "file:"+dir+"?forgetful=allow")
	if err != nil {
		broken("forgetful=allow does not accept it: %v", err)
		return r
	}
	for ; r.Verdict.IDs < 1000 && err == nil; r.Verdict.IDs++ {
		_, err = gen.NextContext(ctx)
	}
	if err := errors.Join(err, gen.Close()); err != nil {
		broken("with forgetful=allow, after %d IDs: %v", r.Verdict.IDs, err)
	}
	return r
}
