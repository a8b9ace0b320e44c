package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Files are files that may change while a server runs: of certificates, tokens and clients. Make one with
// [NewFiles], add what is read from them, and run [Files.Follow]. Its methods are safe for concurrent use.
//
// A change of the content or the mode of a file takes effect once two looks in a row have found the same, since
// the first may find half a file. A link is followed, as in a Kubernetes secret. A read that hangs, as on a dead mount,
// holds up nothing but itself: nobody waits for it for long, and the file has no other read meanwhile.
type Files struct {
	patience time.Duration // for a read
	file     ReadFile      // which may hang

	mu    sync.Mutex
	loads []*load
	reads map[string]*read // that have not ended
}

// Load reads files by read. It returns a function that puts the result in
// use, or reports that there is none. Load is called at each look, and apply only after a change.
type Load func(read ReadFile) (apply func())

// ReadFile returns the text of a file, without a byte order mark, and its mode. A look at the mode by os.Stat could hang
// where the read did not.
type ReadFile func(path string) ([]byte, os.FileMode, error)

type load struct {
	load Load
	used string // what was found when the result was put in use last
	seen string // at the last look
}

// read is one read of a file.
type read struct {
	began time.Time
	done  chan struct{}
	text  []byte
	err   error
	mode  os.FileMode
}

const (
	lookEvery = 2 * time.Second // so that a change is in use within five
	maxFile   = 1 << 20         // bytes of a file
)

var (
	errHangs = errors.New("it was not read in time: want a file on a mount that answers")
	errPipe  = errors.New("it is a pipe: want a file")
)

// NewFiles returns files without any.
func NewFiles() *Files {
	return &Files{patience: time.Second, file: readFile, reads: make(map[string]*read)}
}

// Add reads files by a [Load], and again when they change. It returns the function that puts the first result in use,
// for the caller to call.
func (f *Files) Add(ctx context.Context, by Load) (apply func()) {
	l := &load{load: by}
	apply, l.used = f.look(ctx, l)
	l.seen = l.used
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads = append(f.loads, l)
	return apply
}

// Follow looks for changes every two seconds and, without a wait for a second look, at each signal, until ctx ends.
func (f *Files) Follow(ctx context.Context, signals <-chan os.Signal) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-signals:
			asked = true
		case <-look.C:
		}
		f.turn(ctx, asked)
	}
}

// turn looks at all files.
func (f *Files) turn(ctx context.Context, asked bool) {
	f.mu.Lock()
	loads := f.loads
	f.mu.Unlock()
	for _, l := range loads {
		apply, found := f.look(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if asked || found != l.used && found == l.seen {
			apply()
			l.used = found
		}
		l.seen = found
	}
}

// look loads once. What it found tells whether something has changed since.
func (f *Files) look(ctx context.Context, l *load) (apply func(), found string) {
	sum := sha256.New()
	apply = l.load(func(path string) ([]byte, os.FileMode, error) {
		text, mode, err := f.read(ctx, path)
		fmt.Fprintf(sum, "%q %s %q %v\n", path, mode, text, err)
		return text, mode, err
	})
	return apply, string(sum.Sum(nil))
}

// read returns the text of a file. If an earlier read has not ended, it waits for that one.
func (f *Files) read(ctx context.Context, path string) ([]byte, os.FileMode, error) {
	f.mu.Lock()
	r := f.reads[path]
	if r == nil {
		r = &read{began: time.Now(), done: make(chan struct{})}
		f.reads[path] = r
		go func() {
			r.text, r.mode, r.err = f.file(path)
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.reads, path)
			close(r.done)
		}()
	}
	f.mu.Unlock()
	timer := time.NewTimer(max(0, f.patience-time.Since(r.began))) // of one that hangs, nobody waits for more
	defer timer.Stop()
	select {
	case <-r.done:
		return r.text, r.mode, r.err
	case <-timer.C:
		return nil, 0, &os.PathError{Op: "read", Path: path, Err: errHangs}
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func readFile(path string) (text []byte, mode os.FileMode, err error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without a wait for a pipe's writer
	if err != nil {
		return nil, 0, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if info, err := in.Stat(); err == nil {
		mode = info.Mode()
	}
	if mode&os.ModeNamedPipe != 0 {
		return nil, mode, &os.PathError{Op: "read", Path: path, Err: errPipe}
	}
	text, err = io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, mode, err
	}
	text, err = io.ReadAll(transform.NewReader(bytes.NewReader(text), unicode.BOMOverride(transform.Nop))) // of an editor of Windows
	return text, mode, err
}

// TLS returns a configuration of TLS 1.2 and later with the certificate and the key of
// two files of PEM. If clientCAFile is not empty, clients need a certificate for client
// authentication that an authority in this file has signed.
//
// [Files.Follow] reads the files again. New files that cannot be used leave the old certificate in
// use, and are logged once; nil is slog.Default. No handshake waits for a file.
//
// The error says that a file cannot be read or used, or that the certificate has expired.
func (f *Files) TLS(ctx context.Context, certFile, keyFile, clientCAFile string, log *slog.Logger) (*tls.Config, error) {
	if log == nil {
		log = slog.Default()
	}
	var current atomic.Pointer[tls.Config] // never nil once the first is in use; replaced as a whole
	var failed error
	f.Add(ctx, func(read ReadFile) func() {
		next, err := readTLS(read, certFile, keyFile, clientCAFile)
		return func() {
			old := current.Load()
			switch {
			case err == nil:
				current.Store(next)
				if old != nil {
					log.Info("TLS files were read again", "certificate", certFile, "expires", next.Certificates[0].Leaf.NotAfter)
				}
			case old != nil:
				log.Error("new TLS files cannot be used: the certificate that was read before stays in use", "error", err, "expires", old.Certificates[0].Leaf.NotAfter)
			default:
				failed = fmt.Errorf("service: TLS: %w", err)
			}
		}
	})()
	if failed != nil {
		return nil, failed
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &current.Load().Certificates[0], nil },
	}
	if clientCAFile != "" {
		c.ClientAuth = current.Load().ClientAuth
		// A session of earlier authorities is not resumed: each configuration has keys of its own.
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil }
	}
	return c, nil
}

// readTLS reads the files, and checks that they are fit for use.
func readTLS(read ReadFile, certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	var texts [3][]byte
	for i, path := range []string{certFile, keyFile, clientCAFile} {
		var err error
		if path == "" {
			continue
		}
		if texts[i], _, err = read(path); err != nil {
			return nil, err
		}
	}
	certificate, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", certFile, keyFile, err)
	}
	if end := certificate.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("%s: the certificate has expired at %s", certFile, end.Format(time.RFC3339))
	}
	// The protocols of HTTP and gRPC. A client of RESP names none.
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	if clientCAFile != "" {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return nil, fmt.Errorf("%s: there is no certificate of an authority, as PEM", clientCAFile)
		}
	}
	return c, nil
}
