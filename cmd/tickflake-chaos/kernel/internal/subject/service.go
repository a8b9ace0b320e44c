package subject

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/strategies"
)

// fetchLimit is the client's timeout.
const fetchLimit = 10 * time.Second

// serviceSubject is a server and its client, over gRPC on loopback. Both are in one
// process: a signal reaches both, as that of a machine that stops does. The client
// promises order, and no wait beyond a timeout since a server has answered, and the
// timeout of the attempt that runs then. The timeout is longer than by default: a busy host
// stops its machine for seconds.
func serviceSubject() Subject {
	return Subject{
		Name: "service and client", Group: Ours, Ordered: true, Steady: true, Restarts: true, Leased: true,
		How:   "service.New with generator.Open, a directory; client.Open over gRPC on loopback, in the same process",
		Bound: 2 * fetchLimit,
		Open:  openService,
	}
}

func openService(ctx context.Context, at Place) (Source, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Source{}, err
	}
	gen, err := openGenerator(ctx, at, true, generator.WithStrategy(strategies.Default()))
	if err != nil {
		return Source{}, errors.Join(err, listener.Close())
	}
	log := at.logger()
	server, err := service.New(service.Config{Generator: gen, GRPC: listener, Logger: log})
	if err != nil {
		return Source{}, errors.Join(err, gen.Close(), listener.Close())
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running) }()
	end := func() error { stop(); return errors.Join(<-ended, gen.Close()) }
	ids, err := client.Open(ctx, []string{listener.Addr().String()}, client.WithLogger(log), client.WithTimeout(fetchLimit))
	if err != nil {
		return Source{}, errors.Join(err, end())
	}
	return Source{
		Next: withLead(gen, ids.Next),
		// The server's memory was restored as well. It is told first, so that the client
		// fetches nothing of the old grant.
		Restored: func(ctx context.Context) error { return errors.Join(gen.Restored(ctx), ids.Restored(ctx)) },
		Close:    func() error { return errors.Join(ids.Close(), end()) },
	}, nil
}
