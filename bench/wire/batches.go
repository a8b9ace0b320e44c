package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// batches is a client with connections that stay open. Each of its requests is for a batch of
// IDs.
type batches struct {
	request []byte
	// read reads an answer, and returns its IDs as they are written. skim reads one as cheaply
	// as it can, and returns how many IDs it has.
	read    func(*bufio.Reader) ([]string, error)
	skim    func(*bufio.Reader) (int, error)
	conns   []net.Conn
	readers []*bufio.Reader
}

// overHTTP is a client of HTTP.
func overHTTP(addr string) *batches {
	return &batches{read: readWeb, skim: skimWeb,
		request: fmt.Appendf(nil, "POST /v1/ids?n=%d HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", batch, addr)}
}

// overRESP is a client of the Redis protocol.
func overRESP() *batches {
	n := strconv.Itoa(batch)
	return &batches{read: readRESP, skim: skimRESP, request: fmt.Appendf(nil, "*2\r\n$3\r\nIDS\r\n$%d\r\n%s\r\n", len(n), n)}
}

// connect opens the connections, and looks at one answer: it has as many IDs as asked for,
// each greater than the one before. The caller closes the client even after an error.
func (b *batches) connect(ctx context.Context, addr string) error {
	for range clients {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		b.conns, b.readers = append(b.conns, conn), append(b.readers, bufio.NewReaderSize(conn, 64<<10))
	}
	b.deadline(ctx)
	if _, err := b.conns[0].Write(b.request); err != nil {
		return err
	}
	ids, err := b.read(b.readers[0])
	if err != nil {
		return err
	}
	if len(ids) != batch {
		return fmt.Errorf("asked for %d IDs and got %d", batch, len(ids))
	}
	last := int64(0)
	for _, text := range ids {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= last {
			return fmt.Errorf("the ID %q follows %d", text, last)
		}
		last = id
	}
	return nil
}

// deadline ends all calls with ctx.
func (b *batches) deadline(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		for _, c := range b.conns {
			_ = c.SetDeadline(deadline)
		}
	}
}

func (b *batches) close() error {
	var errs []error
	for _, c := range b.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// take takes n IDs or a few more.
func (b *batches) take(ctx context.Context, n int) (turn, error) {
	b.deadline(ctx)
	var left atomic.Int64
	left.Store(int64(n))
	return together(len(b.conns), func(i int) (done int, err error) {
		for left.Add(-batch) > -batch && ctx.Err() == nil {
			if _, err := b.conns[i].Write(b.request); err != nil {
				return done, err
			}
			got, err := b.skim(b.readers[i])
			if err != nil {
				return done, err
			}
			if got != batch {
				return done, fmt.Errorf("asked for %d IDs and got %d", batch, got)
			}
			done += batch
		}
		return done, nil
	})
}

// answerOf returns the body of an answer of HTTP.
func answerOf(in *bufio.Reader) ([]byte, error) {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, batch*100))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, body)
	}
	return body, errors.Join(err, answer.Body.Close())
}

func readWeb(in *bufio.Reader) ([]string, error) {
	body, err := answerOf(in)
	if err != nil {
		return nil, err
	}
	var answer struct {
		IDs []string `json:"ids"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	return answer.IDs, nil
}

// skimWeb counts the quotes of an answer: two for each ID, and two of the field's name.
func skimWeb(in *bufio.Reader) (int, error) {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %s", answer.Status)
	}
	var n quotes
	_, err = io.Copy(&n, answer.Body)
	return int(n-2) / 2, errors.Join(err, answer.Body.Close())
}

// quotes counts the quotes of what is written to it.
type quotes int

func (q *quotes) Write(p []byte) (int, error) {
	*q += quotes(bytes.Count(p, []byte{'"'}))
	return len(p), nil
}

// arrayOf reads the first line of an array, and returns its length.
func arrayOf(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, "*"), "\r\n"))
	if err != nil || line[0] != '*' || n < 0 {
		return 0, fmt.Errorf("the answer is %q", strings.TrimSpace(line))
	}
	return n, nil
}

func readRESP(in *bufio.Reader) ([]string, error) {
	n, err := arrayOf(in)
	if err != nil {
		return nil, err
	}
	var ids []string
	for range 2 * min(n, batch+1) { // a line with the length, and one with the ID
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line[0] != '$' {
			ids = append(ids, strings.TrimSuffix(line, "\r\n"))
		}
	}
	return ids, nil
}

// skimRESP counts the lines of an answer. Nothing follows it, since one request is out.
func skimRESP(in *bufio.Reader) (int, error) {
	n, err := arrayOf(in)
	if err != nil {
		return 0, err
	}
	for left := 2 * n; left > 0; {
		if _, err := in.Peek(1); err != nil {
			return 0, err
		}
		have, _ := in.Peek(in.Buffered()) // it is there
		if left -= bytes.Count(have, []byte{'\n'}); left < 0 {
			return 0, fmt.Errorf("an answer of %d IDs has more lines", n)
		}
		_, _ = in.Discard(len(have)) // it is there
	}
	return n, nil
}
