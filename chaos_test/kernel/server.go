package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
)

// redis is the server for stores that machines share. It is started when the first
// machine asks for it.
type redis struct {
	mu    sync.Mutex
	port  string
	cmd   *exec.Cmd
	ended <-chan error
	err   error
}

// redisLimit is how long the server may take to start.
const redisLimit = 20 * time.Second

const redisServer = "redis-server"

func haveRedis() bool {
	_, err := exec.LookPath(redisServer)
	return err == nil
}

// errNoRedis is the reason to skip a fault.
const errNoRedis = errSkip("there is no redis-server in PATH: install it (on Debian and Ubuntu: apt-get install redis-server)")

// url returns the URL of the server as a machine reaches it. dir is for its data.
func (r *redis) url(ctx context.Context, dir string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil && r.err == nil {
		r.err = r.start(ctx, dir)
	}
	return "redis://10.0.2.2:" + r.port + "/0", r.err
}

func (r *redis) start(ctx context.Context, dir string) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, r.port, _ = net.SplitHostPort(free.Addr().String())
	if err := free.Close(); err != nil {
		return err
	}
	dir, err = os.MkdirTemp(dir, "redis")
	if err != nil {
		return err
	}
	// With this configuration it forgets nothing; stores.Open refuses one that does.
	r.cmd = exec.Command(redisServer, "--port", r.port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always")
	if r.ended, err = machine.Start(r.cmd); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	deadline := time.Now().Add(redisLimit)
	for {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+r.port, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ended:
			r.ended = nil
			return fmt.Errorf("redis-server has ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server does not answer in %v: %w", redisLimit, err)
		}
	}
}

// close ends the server.
func (r *redis) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
	}
	if r.ended != nil {
		<-r.ended
	}
	r.err = errors.New("the server for stores has ended")
}
