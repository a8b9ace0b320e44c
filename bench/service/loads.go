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
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tickflake/tickflake/bench/measure"
	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

const (
	batch       = 1000 // IDs of a request where they are taken in batches
	channels    = 2    // of gRPC
	callers     = 50   // of unary calls, as redis-benchmark has connections
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
		return measure.Figures{"wall": 1e9 / figure(1), "p50": figure(2), "p99": figure(3)}, nil
	}
}

// figures are the lines of titles and of figures in the CSV form of redis-benchmark's report: rates, and latencies
// in milliseconds.
var figures = regexp.MustCompile(`(?m)^"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",.*\n` +
	`".*","([\d.]+)","[\d.]+","[\d.]+","([\d.]+)","[\d.]+","([\d.]+)",`)

// together runs f in n goroutines, and returns what they did in all.
func together(n int, f func(i int) (done int, err error)) (measure.Figures, error) {
	var sum atomic.Int64
	err := measure.Together(n, func(i int) error {
		done, err := f(i)
		sum.Add(int64(done))
		return err
	})
	return measure.Figures{"done": float64(sum.Load())}, err
}

// rpc is a client of a gRPC server, with a few connections.
type rpc []tickflakev1.TickflakeServiceClient

// dialGRPC makes a client of the server at an address, unless that could not be had.
func dialGRPC(addr string, failed error, open *measure.Closers) (r rpc, err error) {
	for range channels {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil || failed != nil {
			return nil, errors.Join(err, failed)
		}
		open.Add(conn.Close)
		r = append(r, tickflakev1.NewTickflakeServiceClient(conn))
	}
	return r, nil
}

// unary calls Take for one ID at a time, n times in all.
func (r rpc) unary(ctx context.Context, n int) (measure.Figures, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return together(callers, func(i int) (done int, err error) {
		for left.Add(-1) >= 0 {
			answer, err := r[i%len(r)].Take(ctx, &tickflakev1.TakeRequest{Count: new(int64(1))})
			if err != nil {
				return done, err
			}
			if len(answer.Runs) != 1 || answer.Runs[0].Count != 1 {
				return done, fmt.Errorf("gRPC: asked for one ID and got the runs %v", answer.Runs)
			}
			done++
		}
		return done, nil
	})
}

// ids asks for batches of IDs over RESP, until there are n. All IDs have as many digits, so all answers are as long as
// the first.
func ids(addr string) measure.Do {
	return func(ctx context.Context, n int) (measure.Figures, error) {
		var left atomic.Int64
		left.Store(int64(n))
		return together(clients, func(int) (done int, err error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return 0, err
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
			in, size := bufio.NewReaderSize(conn, 64<<10), 0
			for ; left.Add(-batch) > -batch && err == nil; done += batch {
				_, err = fmt.Fprintf(conn, "*2\r\n$3\r\nIDS\r\n$4\r\n%d\r\n", batch)
				if done > 0 && err == nil {
					_, err = in.Discard(size)
				}
				for lines := 0; done == 0 && lines <= 2*batch && err == nil; lines++ { // a head, and two for each ID
					var line []byte
					line, err = in.ReadSlice('\n')
					size += len(line)
				}
				if err == nil && (size < 18*batch || in.Buffered() > 0) {
					err = fmt.Errorf("RESP: an answer has not %d IDs", batch)
				}
			}
			return done, err
		})
	}
}

// post asks for batches of IDs over HTTP, until there are n.
func post(url string) measure.Do {
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	return func(ctx context.Context, n int) (measure.Figures, error) {
		var left atomic.Int64
		left.Store(int64(n))
		return together(clients, func(int) (done int, err error) {
			for left.Add(-batch) > -batch && err == nil {
				var size int64
				if size, err = ask(ctx, web, url); err == nil && size < 18*batch {
					err = fmt.Errorf("HTTP: an answer of %d bytes has not %d IDs", size, batch)
				}
				done += batch
			}
			return done, err
		})
	}
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

// emptyEnv is the variable with the address of the empty handler, in its process.
const emptyEnv = "TICKFLAKE_BENCH_EMPTY"

// Empty makes this program the empty handler if it was started as that, and does not return then.
func Empty() {
	addr := os.Getenv(emptyEnv)
	if addr == "" {
		return
	}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		s := grpc.NewServer()
		tickflakev1.RegisterTickflakeServiceServer(s, emptyHandler{})
		err = s.Serve(l)
	}
	fmt.Fprintln(os.Stderr, "empty handler:", err)
	os.Exit(1)
}

// emptyHandler answers Take without an ID of a generator: what gRPC costs by itself.
type emptyHandler struct {
	tickflakev1.UnimplementedTickflakeServiceServer
}

func (emptyHandler) Take(context.Context, *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	return &tickflakev1.TakeResponse{Runs: []*tickflakev1.Run{{First: 1 << 60, Count: 1, Stride: 1}}}, nil
}

// startEmpty runs the empty handler.
func startEmpty(ctx context.Context, open *measure.Closers) (addr string, pid int, err error) {
	if addr, err = program.FreeAddress(); err != nil {
		return "", 0, err
	}
	c := program.Config{Env: []string{emptyEnv + "=" + addr}}
	if c.Path, err = os.Executable(); err != nil {
		return "", 0, err
	}
	c.Ready = func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	p, err := program.Start(ctx, c)
	if err != nil {
		return "", 0, err
	}
	open.Add(p.Kill)
	return addr, p.PID(), nil
}
