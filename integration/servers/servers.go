// Package servers runs the servers that tests and benchmarks need: private ones on free
// ports of 127.0.0.1, with their data in directories of their own. If this program is killed,
// the servers end too (on Linux), but their directories stay.
//
// You need these names: [Start] runs one, and [All] several at once; [For] runs one until a
// test ends. [Reason] shortens their errors.
//
// The servers have their default settings, but for ports, paths, passwords and the settings
// of [Wanted]. Etcd and NATS are linked into the program: it is started again as the server.
// A program that wants them imports servers/etcd or servers/nats. S3 and Kubernetes are built by the commands in s3gateway
// and kubeapiserver.
package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/tickflake/tickflake/integration/program"
)

// Kind is the program of a server.
type Kind string

// The kinds of servers. A directory is the store that has no server. Kubernetes is the API server
// alone: no controllers, and no nodes. It wants the address of an etcd as its only setting. A setting of S3 is that
// of S3Other.
const (
	Directory  Kind = "directory"
	PostgreSQL Kind = "PostgreSQL"
	MariaDB    Kind = "MariaDB"
	Redis      Kind = "Redis"
	ZooKeeper  Kind = "ZooKeeper"
	Etcd       Kind = "etcd"
	NATS       Kind = "NATS"
	S3         Kind = "S3"
	Kubernetes Kind = "Kubernetes"
)

// Wanted is a server to start.
type Wanted struct {
	Kind Kind

	// Settings are further arguments of PostgreSQL, MariaDB and Redis, and further lines of
	// the file of settings of ZooKeeper ("myid=N" is its file myid), etcd (of two for a name,
	// the last counts) and NATS.
	Settings []string

	Copy *Server // of PostgreSQL: the data is a copy of this server's
	Port int     // 0 is a free one
	Base string  // the directory of the server's own directory; "" is one that syncs to a disk
}

// Server is one that runs, unless Err is set. Its process can be killed, started again on its
// data, suspended and resumed.
type Server struct {
	*program.Process // nil for a directory
	Kind             Kind
	Version          string // "" for those that are linked, and S3
	Addr             string // host and port
	Dir              string // of its data and files

	// URL is that of stores.Open, without a namespace. Its user may do everything.
	URL string

	// Password is that of the user of URL, "" with ZooKeeper, etcd and NATS, which have
	// none. It is hard to hide, and hard to put into a URL.
	Password string

	// Err is why it does not run. If it is not installed, Err names Debian's package.
	Err error

	how how
}

// All starts servers, all at once, and returns when each is ready or has failed. stop
// ends them and removes their data. The caller must call it, and may call it again. When
// ctx ends, servers that are not ready yet fail.
func All(ctx context.Context, wanted ...Wanted) (started []*Server, stop func() error) {
	var starting sync.WaitGroup
	for _, w := range wanted {
		s := &Server{Kind: w.Kind}
		started = append(started, s)
		starting.Go(func() {
			if err := s.start(ctx, w); err != nil {
				s.Err = errors.Join(err, s.Close())
			}
		})
	}
	starting.Wait()
	return started, sync.OnceValue(func() error {
		errs := make([]error, len(started))
		var stopping sync.WaitGroup
		for i, s := range started {
			stopping.Go(func() { errs[i] = s.Close() })
		}
		stopping.Wait()
		return errors.Join(errs...)
	})
}

// start starts the server. After an error, Close removes its files.
func (s *Server) start(ctx context.Context, w Wanted) (err error) {
	var ok bool
	if s.how, ok = kinds[w.Kind]; !ok && w.Kind != Directory {
		return fmt.Errorf("no server is called %q; import the package of servers that links it", w.Kind)
	}
	if w.Port == 0 {
		if w.Port, err = program.Port(); err != nil {
			return err
		}
	}
	if w.Base == "" {
		w.Base = diskBase()
	}
	if s.Dir, err = program.Dir(w.Base, s.how.user); err != nil {
		return err
	}
	if w.Kind == Directory {
		s.URL = s.Dir + "/ids"
		return nil
	}
	s.Addr = fmt.Sprint("127.0.0.1:", w.Port)
	at := s.how.url
	at.Host = s.Addr
	if at.User != nil {
		s.Password = password
		at.User = url.UserPassword(at.User.Username(), password)
	}
	s.URL = at.String()
	config := program.Config{Dir: s.Dir, User: s.how.user, Quit: s.how.quit}
	if s.how.name == "" {
		config.Path, err = os.Executable()
		config.Env = []string{linked(w.Kind) + "=" + s.file()}
	} else {
		config.Path, err = program.Find(s.how.name, s.how.debian, s.how.dirs...)
	}
	if err != nil {
		return err
	}
	if config.Args, err = s.how.prepare(ctx, s, w); err != nil {
		return err
	}
	config.Ready = func(ctx context.Context) (err error) {
		s.Version, err = s.how.version(ctx, s)
		return err
	}
	s.Process, err = program.Start(ctx, config)
	return err
}

// Close ends the server and removes its data. A second call does nothing.
func (s *Server) Close() error {
	var err error
	if s.Process != nil {
		err = s.Stop()
	}
	if s.Dir != "" {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// Port is the port of Addr.
func (s *Server) Port() string { return s.Addr[strings.LastIndexByte(s.Addr, ':')+1:] }

// At is URL through another address, such as a proxy's, with options, "name=value".
func (s *Server) At(addr string, options ...string) string {
	at := strings.Replace(s.URL, s.Addr, addr, 1)
	for _, option := range options {
		if strings.Contains(at, "?") {
			at += "&" + option
		} else {
			at += "?" + option
		}
	}
	return at
}

// password is that of all servers of this process. Every part of a URL, a DSN or a shell would
// take it for something else. Every user of the machine can reach the ports, so it is random. A
// replica of MariaDB takes 32 characters.
var password = "s3" + rand.Text()[:20] + "/@:?#&%x"

// diskBase is a directory on a disk: /tmp is in memory on many systems, where a sync costs
// nothing.
func diskBase() string {
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		return "/var/tmp"
	}
	return ""
}

// Reason is an error on one line, of limited length: an error of a server ends with what
// the server has printed.
func Reason(err error) string {
	const most = 400
	text := []rune(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return strings.TrimSuffix(string(text), ".")
}

// Linked makes a kind known whose server is linked into this program. It is called by an
// init of the server's package, and does not return in a process that is to be the server:
// serve runs it by its file of settings. prepare returns the lines of that file, and makes
// s.URL; ready asks whether it serves.
func Linked(kind Kind, serve func(file string) error, prepare func(s *Server, w Wanted) ([]string, error), ready func(context.Context, *Server) error) {
	if file := os.Getenv(linked(kind)); file != "" {
		fmt.Fprintln(os.Stderr, serve(file))
		os.Exit(1)
	}
	kinds[kind] = how{
		prepare: func(_ context.Context, s *Server, w Wanted) ([]string, error) {
			lines, err := prepare(s, w)
			return nil, errors.Join(err, s.Configure(lines...))
		},
		version: func(ctx context.Context, s *Server) (string, error) { return "", ready(ctx, s) },
	}
}

// linked is the variable that makes this program the server, with its file of settings.
func linked(kind Kind) string { return "TICKFLAKE_TEST_" + strings.ToUpper(string(kind)) }

func (s *Server) file() string { return s.Dir + "/settings" }

// Configure replaces the file of settings of a linked server, ZooKeeper and S3. They count from its next start.
func (s *Server) Configure(lines ...string) error {
	return os.WriteFile(s.file(), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
