package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"google.golang.org/grpc"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// askedFor is the variable that makes a process the server. Its value is the directory of
// its store.
const askedFor = "TICKFLAKE_BENCH_SERVICE"

// Serve serves until its standard input ends, and ends the process, if the process was
// started for that. A program or a test that measures the section must call it first, in
// main or TestMain.
func Serve() {
	dir := os.Getenv(askedFor)
	if dir == "" {
		return
	}
	if err := serve(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// addresses are those at which the child listens.
type addresses struct {
	RESP, GRPC, HTTP string
	Empty            string // of the gRPC server whose handler does nothing
}

// usage is what the child has used, or holds now.
type usage struct {
	CPU        int64  // nanoseconds of processor time
	Told       bool   // the system tells the processor time
	Memory     uint64 // bytes of heap and stacks that are in use, after a collection
	Goroutines int
}

// The commands of the parent, one in a line. Each is answered by a line of JSON.
const (
	askCPU    = "cpu"
	askMemory = "memory"
)

// wide is the layout of the server: the default one ends at 4.096 million IDs per second.
func wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 4, 18
	return l
}

// counted is the sequence that the server creates.
const counted = "orders"

func serve(dir string, in io.Reader, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	g, err := generator.Open(ctx, filepath.Join(dir, "nodes"), generator.WithLayout(wide()), generator.WithLeaseOptions(lease.WithLogger(quiet)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	store, err := stores.Open(ctx, filepath.Join(dir, "sequences"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var at addresses
	var listeners [4]net.Listener
	for i, addr := range []*string{&at.RESP, &at.GRPC, &at.HTTP, &at.Empty} {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		defer func() { _ = listeners[i].Close() }() // closed already, unless there was an error
		*addr = listeners[i].Addr().String()
	}
	server, err := service.New(service.Config{
		Generator: g, Store: store, Sequences: []sequence.Option{sequence.WithLogger(quiet)},
		Create: []service.Create{{Prefix: counted, Definition: sequence.Definition{Mode: sequence.Segmented, Start: 1}}},
		RESP:   listeners[0], GRPC: listeners[1], HTTP: listeners[2], Logger: quiet,
	})
	if err != nil {
		return err
	}
	empty := grpc.NewServer()
	tickflakev1.RegisterTickflakeServer(empty, emptyHandler{})
	failed := make(chan error, 2)
	go func() { failed <- empty.Serve(listeners[3]) }()
	go func() { failed <- server.Run(ctx) }()
	answered := make(chan error, 1)
	go func() { answered <- answer(at, in, out) }()
	running := 2
	select {
	case err = <-answered:
	case err = <-failed:
		running--
		err = fmt.Errorf("the server has stopped: %w", err)
	}
	stop()
	empty.Stop()
	for range running {
		err = errors.Join(err, <-failed)
	}
	return err
}

// answer tells the addresses, and answers the parent's commands until its input ends.
func answer(at addresses, in io.Reader, out io.Writer) error {
	to := json.NewEncoder(out)
	if err := to.Encode(at); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var u usage
		if lines.Text() == askMemory {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // the first one leaves the contents of pools
			runtime.ReadMemStats(&m)
			u.Memory, u.Goroutines = m.HeapInuse+m.StackInuse, runtime.NumGoroutine()
		}
		cpu, told := measure.CPUTime()
		u.CPU, u.Told = cpu.Nanoseconds(), told
		if err := to.Encode(u); err != nil {
			return err
		}
	}
	return lines.Err()
}

// emptyHandler answers Take without an ID of a generator: what gRPC costs by itself.
type emptyHandler struct {
	tickflakev1.UnimplementedTickflakeServer
}

func (emptyHandler) Take(context.Context, *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	return &tickflakev1.TakeResponse{Runs: []*tickflakev1.Run{{First: 1 << 60, Count: 1, Stride: 1}}}, nil
}
