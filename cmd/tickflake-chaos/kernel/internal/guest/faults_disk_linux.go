package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores"
)

// diskWindow is the grant of a lease while the disk fails: it ends before the disk heals.
const diskWindow = time.Second

// diskFails is how long a disk fails.
const diskFails = 3 * time.Second

// diskHealed is how long the subjects have to go on.
const diskHealed = 4 * time.Second

func diskFaults() []Fault {
	return []Fault{
		{Name: "disk-full", About: "the disk of the state is full for 3 s", Kind: Disks, Window: diskWindow,
			Causes: []string{unix.ENOSPC.Error()}, Run: diskFull},
		{Name: "disk-read-only", About: "the file system of the state is read-only for 3 s, as after an error", Kind: Disks, Window: diskWindow,
			Causes: []string{unix.EROFS.Error()}, Run: diskReadOnly},
		{Name: "disk-error", About: "the disk is pulled out: every request to it fails until the end", Kind: Disks, Window: diskWindow, Own: true,
			Causes: []string{unix.EIO.Error(), unix.EROFS.Error()}, Run: diskError},
	}
}

// diskFull takes each free block of the file system, also those that become free.
func diskFull(s *Stage) {
	s.Issue(time.Second)
	path := filepath.Join(stateDir, "full")
	f, err := os.Create(path)
	s.must(err)
	defer func() { _, _ = f.Close(), os.Remove(path) }()
	s.Mark()
	var size int64
	for begin := time.Now(); time.Since(begin) < diskFails; {
		for part := int64(64 << 20); part >= 4096; {
			switch err := unix.Fallocate(int(f.Fd()), 0, size, part); {
			case err == nil:
				size += part
			case errors.Is(err, unix.ENOSPC):
				part /= 2
			case !errors.Is(err, unix.EINTR):
				s.must(fmt.Errorf("fill the disk: %w", err))
			}
		}
		s.Issue(5 * time.Millisecond)
	}
	s.Note = fmt.Sprintf("%d MiB filled", size>>20)
	s.must(errors.Join(f.Close(), os.Remove(path)))
	s.goOn(diskHealed)
}

// diskReadOnly does what a kernel does that no longer trusts a disk: also files that are
// open for writing cannot be written.
func diskReadOnly(s *Stage) {
	s.Issue(time.Second)
	s.Mark()
	s.must(os.WriteFile("/proc/sysrq-trigger", []byte("u"), 0))
	s.Issue(diskFails)
	s.mustRefuse(unix.EROFS)
	err := unix.Mount("", stateDir, "", unix.MS_REMOUNT, "")
	if errors.Is(err, unix.EINVAL) {
		// A file that was open had been deleted: ext4 wants a new mount then.
		s.Note = "mounted anew, between SIGKILL and start"
		err = nil
		s.Restart(func() error {
			if err := unix.Unmount(stateDir, 0); err != nil {
				return err
			}
			return mount(stateDisk, stateDir, "ext4")
		})
	}
	if err != nil {
		s.must(fmt.Errorf("mount %s for writing again: %w", stateDir, err))
	}
	s.goOn(diskHealed)
}

// diskError pulls the disk out: the kernel answers each request with an error from then on.
func diskError(s *Stage) {
	s.Issue(time.Second)
	s.Mark()
	device, err := filepath.EvalSymlinks("/sys/block/" + filepath.Base(stateDisk) + "/device")
	s.must(err)
	s.must(os.WriteFile(filepath.Join(filepath.Dir(device), "remove"), []byte("1"), 0))
	s.Issue(diskFails)
	s.mustRefuse(unix.EIO, unix.EROFS)
}

// mustRefuse ends the fault unless a write to the disk has one of these errors.
func (s *Stage) mustRefuse(wanted ...error) {
	f, err := os.Create(filepath.Join(stateDir, "probe"))
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if !slices.ContainsFunc(wanted, func(want error) bool { return errors.Is(err, want) }) {
		s.must(fmt.Errorf("a write to the disk that fails: %v, want one of %v", err, wanted))
	}
}

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
