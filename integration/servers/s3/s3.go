// Package s3 links versitygw, a server that speaks S3, into a program, for package servers: importing
// it makes the kind servers.S3 known.
package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3response"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

// Bucket is the only bucket of a server. User and Secret are its credentials, which no URL has.
const (
	Bucket = "ids"
	User   = "rig"
	Secret = "s3cret/@:?#&%x"
)

func init() {
	servers.Linked(servers.S3, serve, prepare, ready)
}

// Other is the setting of a server on the data of another one, with which it races: neither sees the writes that
// the other has under way.
func Other(s *servers.Server) string { return "data=" + s.Dir + "/data" }

// serve runs versitygw over the directory in the first line of a file, at the address in the
// second. A third is the setting of Other, or else says that it takes no writes. It does not sync: a write outlives
// the process, and not a loss of power.
func serve(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(text))
	dir, addr := lines[0], lines[1]
	data, other := strings.CutPrefix(lines[len(lines)-1], "data=")
	if other {
		dir = data
	}
	if err := os.MkdirAll(filepath.Join(dir, Bucket), 0o700); err != nil {
		return err
	}
	back, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{Concurrency: 100, ForceNoObjLockFile: other})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), &whole{Posix: back}, &embedgw.Config{
		RootUserAccess: User, RootUserSecret: Secret, Readonly: len(lines) > 2 && !other, Ports: []string{addr}, HealthPath: "/health",
		MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000, KeepAlive: true, Quiet: true,
	})
}

// whole lists each object once, as S3 does: a file that replaces another moves in some directories, as those in memory,
// so who reads one meanwhile meets it twice, or not at all.
type whole struct {
	*posix.Posix
	listing sync.RWMutex // or writing
}

func (w *whole) ListObjectsV2(ctx context.Context, in *sdk.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	w.listing.Lock()
	defer w.listing.Unlock()
	return w.Posix.ListObjectsV2(ctx, in)
}

func (w *whole) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	text, err := io.ReadAll(in.Body) // for which a list does not wait
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	in.Body = bytes.NewReader(text)
	w.listing.RLock()
	defer w.listing.RUnlock()
	return w.Posix.PutObject(ctx, in)
}

// ReadOnly starts a server again that takes no writes, or takes them again.
func ReadOnly(s *servers.Server, yes bool) error {
	lines := []string{s.Dir + "/data", s.Addr}
	if yes {
		lines = append(lines, "readonly")
	}
	return errors.Join(s.Kill(), s.Configure(lines...), s.Process.Start())
}

func prepare(s *servers.Server, w servers.Wanted) ([]string, error) {
	s.URL = "s3://" + Bucket + "?endpoint=http://" + s.Addr
	return append([]string{s.Dir + "/data", s.Addr}, w.Settings...), nil
}

func ready(ctx context.Context, s *servers.Server) error {
	_, err := program.Get(ctx, "http://"+s.Addr+"/health", "")
	return err
}
