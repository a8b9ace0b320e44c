package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tickflake/tickflake/integration/program"
)

// S3Bucket is the only bucket of a server. S3User and S3Secret are its credentials, which no URL has.
const (
	S3Bucket = "ids"
	S3User   = "rig"
	S3Secret = "s3cret/@:?#&%x"
)

func init() { kinds[S3] = built("s3gateway", prepareS3, versionOfS3) }

// built is a program of a module in a directory here, which its command puts into the user's cache.
func built(name string, prepare func(context.Context, *Server, Wanted) ([]string, error), version func(context.Context, *Server) (string, error)) how {
	cache, _ := os.UserCacheDir() // or it is looked for in the working directory
	return how{name: name, debian: fmt.Sprintf(`GOWORK=off go -C integration/servers/%s build -o "%s/tickflake/" .`, name, cache), dirs: []string{filepath.Join(cache, "tickflake")},
		prepare: prepare, version: version}
}

// S3Other is the setting of a server on the data of another one, with which it races: neither sees the writes that
// the other has under way.
func (s *Server) S3Other() string { return s.data() }

// S3ReadOnly starts a server again that takes no writes, or takes them again.
func (s *Server) S3ReadOnly(yes bool) error {
	mode := "whole"
	if yes {
		mode = "readonly"
	}
	return errors.Join(s.Kill(), s.configureS3(s.data(), mode), s.Process.Start())
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) configureS3(data, mode string) error {
	return s.Configure(data, s.Addr, S3User, S3Secret, mode)
}

func prepareS3(_ context.Context, s *Server, w Wanted) ([]string, error) {
	s.URL = "s3://" + S3Bucket + "?endpoint=http://" + s.Addr
	data, mode := s.data(), "whole"
	if len(w.Settings) > 0 {
		data, mode = w.Settings[0], "other"
	}
	return []string{s.file()}, errors.Join(os.MkdirAll(filepath.Join(data, S3Bucket), 0o700), s.configureS3(data, mode))
}

func versionOfS3(ctx context.Context, s *Server) (string, error) {
	_, err := program.Get(ctx, "http://"+s.Addr+"/health", "")
	return "", err
}
