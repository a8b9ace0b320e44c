package service

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/integration/servers"
)

const (
	batch       = 1000 // IDs of a request where they are taken in batches
	clients     = 8    // of batches
	connections = 50   // of redis-benchmark
)

// loader is the user of redis-benchmark in the private Redis. Its password would be seen in
// the list of processes, so it needs none, and may do nothing else.
const loader = "load"

// wantedRedis is the Redis beside the service. It does not save its data meanwhile.
var wantedRedis = servers.Wanted{Kind: servers.Redis, Settings: []string{"--save", "", "--user", loader, "on", "nopass", "~*", "+incr"}}

// benchmark runs redis-benchmark. Its command, after options, is that of each request.
func benchmark(addr string, pipeline int, command ...string) measure.Do {
	return func(ctx context.Context, n int) (measure.Figures, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		args := []string{"-h", host, "-p", port, "-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "--csv"}
		cmd := exec.CommandContext(ctx, "redis-benchmark", append(args, command...)...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("redis-benchmark: %w: %s", err, out)
		}
		match := figures.FindSubmatch(out)
		if match == nil || bytes.Contains(out, []byte("rror")) {
			return nil, fmt.Errorf("redis-benchmark: want figures, and no error: %q", out)
		}
		figure := func(i int) float64 { v, _ := strconv.ParseFloat(string(match[i]), 64); return v } // it is a number
		return measure.Figures{"wall": 1e9 / figure(1), "p99": figure(2)}, nil
	}
}

// figures are the lines of titles and of figures in the CSV form of redis-benchmark's report: rates, and latencies
// in milliseconds.
var figures = regexp.MustCompile(`(?m)^"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",.*\n` +
	`".*","([\d.]+)","[\d.]+","[\d.]+","[\d.]+","[\d.]+","([\d.]+)",`)

// batches has clients take batches of IDs until there are n, whole batches. client returns the function that takes one, and one that ends
// the client.
func batches(client func(ctx context.Context) (take func() error, end func() error, err error)) measure.Do {
	return func(ctx context.Context, n int) (measure.Figures, error) {
		var taken atomic.Int64 // batches
		return nil, measure.Together(clients, func(int) error {
			take, end, err := client(ctx)
			if err != nil {
				return err
			}
			for taken.Add(1) <= int64(n/batch) && err == nil {
				err = take()
			}
			return errors.Join(err, end())
		})
	}
}

// ids takes batches of IDs over RESP. All IDs have as many digits, so all answers are as long as the first.
func ids(addr string) measure.Do {
	return batches(func(ctx context.Context) (func() error, func() error, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, nil, err
		}
		cut := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
		in, size := bufio.NewReaderSize(conn, 64<<10), 0
		return func() error {
			_, err := fmt.Fprintf(conn, "*2\r\n$3\r\nIDS\r\n$4\r\n%d\r\n", batch)
			if size > 0 && err == nil {
				_, err = in.Discard(size)
			} else {
				for lines := 0; lines <= 2*batch && err == nil; lines++ { // a head, and two for each ID
					var line []byte
					line, err = in.ReadSlice('\n')
					size += len(line)
				}
			}
			if err == nil && (size < 18*batch || in.Buffered() > 0) {
				err = fmt.Errorf("RESP: an answer has not %d IDs", batch)
			}
			return err
		}, func() error { cut(); return conn.Close() }, nil
	})
}

// post takes batches of IDs over HTTP.
func post(url string) measure.Do {
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	return batches(func(ctx context.Context) (func() error, func() error, error) {
		return func() error {
			size, err := ask(ctx, web, url)
			if err == nil && size < 18*batch {
				err = fmt.Errorf("HTTP: an answer of %d bytes has not %d IDs", size, batch)
			}
			return err
		}, func() error { return nil }, nil
	})
}

// ask sends a POST without a body, and returns the size of the answer.
func ask(ctx context.Context, web *http.Client, url string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := web.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	return io.Copy(io.Discard, answer.Body)
}
