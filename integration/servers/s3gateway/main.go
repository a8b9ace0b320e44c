// Command s3gateway is versitygw, a server that speaks S3, for the tests of stores/s3. It is no module of go.work, since it
// brings some 250 packages:
//
//	GOWORK=off go -C integration/servers/s3gateway build -o "${XDG_CACHE_HOME:-$HOME/.cache}/tickflake/" .
//
// Its only argument is a file with the directory of the buckets, the address, the user, the secret, and one of the modes: whole,
// readonly, and other, for a server on the data of another one, with which it races: neither sees the writes that the other has
// under way. It does not sync: a write outlives the process, and not a loss of power.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3response"
)

func main() {
	fmt.Fprintln(os.Stderr, serve(os.Args[1]))
	os.Exit(1)
}

func serve(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var dir, addr, user, secret, mode string
	if _, err := fmt.Sscan(string(text), &dir, &addr, &user, &secret, &mode); err != nil {
		return err
	}
	back, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{Concurrency: 100, ForceNoObjLockFile: mode == "other"})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), &whole{Posix: back}, &embedgw.Config{
		RootUserAccess: user, RootUserSecret: secret, Readonly: mode == "readonly", Ports: []string{addr}, HealthPath: "/health",
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
