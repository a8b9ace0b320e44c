package redis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// Store is a [stores.Store] in a hash of a Redis server. It is safe for use by several
// goroutines at once.
type Store struct {
	client    driver.UniversalClient
	owned     bool // Close closes the client
	namespace string
	hash      string // of the cells' texts by key
	index     string // a sorted set of the keys, all with the same score
	replicas  int
}

var _ stores.DurabilityChecker = (*Store)(nil)

// Option is an option of [New].
type Option func(*Store) error

// WithReplicas makes each Swap wait until n replicas, 0 to 100, have received it, and
// each Read until they have received the cell that it returns, for at most a second. If
// fewer have received it by then, the error wraps [ErrReplicas]. For any other n, New
// returns an error. The default is 0.
func WithReplicas(n int) Option {
	return func(s *Store) error {
		if n < 0 || n > 100 {
			return fmt.Errorf("redis.WithReplicas(%d): want 0 to 100", n)
		}
		s.replicas = n
		return nil
	}
}

// New returns a Store of the cells of a namespace, in the server behind client: one
// server, one under Sentinel, or a cluster. It sends nothing: the store connects at its first use.
//
// A name that [stores.CheckNamespace] refuses, a nil client or option, and a number of
// replicas out of range are errors. A [driver.Ring] is one, too: it looks for the cells on
// another server when their own is down.
//
// Writes do not use the client's retries: a write that was applied the first
// time would then report a conflict. Reads go to the primary even if the client
// prefers replicas. An operation whose context has ended returns at once; unless
// the client's option ContextTimeoutEnabled is set, its command continues in the
// background until the client's ReadTimeout. With ContextTimeoutEnabled, or a short
// ReadTimeout, a server that does not answer may count more connections than the client's
// pool. The caller closes the client.
func New(client driver.UniversalClient, namespace string, opts ...Option) (*Store, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("redis.New: no client")
	}
	if _, ok := client.(*driver.Ring); ok {
		return nil, errors.New("redis.New: a Ring moves keys to other servers while theirs is down, and so forgets cells: use a client of one server, or of a cluster")
	}
	if err := stores.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	s := &Store{client: client, namespace: namespace, hash: "tickflake:{" + namespace + "}", index: "tickflake:{" + namespace + "}:keys"}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("redis.New: option %d of %d is nil", i+1, len(opts))
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close closes the client of a Store that was opened by a URL, and returns the driver's
// error.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
		return err
	}
	return nil
}

// A field's text is that of engine.FormatCell. The sorted set has each key of the hash
// with the same score, and so in the order of bytes.
const (
	// The HDEL deletes nothing, since no field has that name. But it is a write. So a
	// replica, which may be behind, refuses it, and so does a primary that lacks the
	// replicas it needs, since it may have been replaced. And clients send scripts only to
	// the primary.
	readScript = `redis.call('HDEL', KEYS[1], '')
return redis.call('HGET', KEYS[1], ARGV[1])`

	// The HSET is a write for the replicas. From Redis 7.2 on, WAIT returns at once if its
	// connection has written nothing; before, it waits for the writes of other connections
	// as well.
	confirmedReadScript = `redis.call('HSET', KEYS[1], '', '')
` + readScript

	// It returns a text that it has not replaced: of another version, or of no cell.
	swapScript = `local cell = redis.call('HGET', KEYS[1], ARGV[1])
if cell then
  local version = string.match(cell, '^([1-9]%d*) ')
  if version ~= ARGV[2] or #cell > #version + 1 + 1024 then return cell end
elseif ARGV[2] ~= '0' then
  return 0
end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`

	// It returns keys and texts in turn, and nil for a key without a text.
	listScript = `local keys = redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[1], '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
local answer = {}
for i, key in ipairs(keys) do
  answer[2*i-1] = key
  answer[2*i] = redis.call('HGET', KEYS[1], key)
end
return answer`
)

// page is the largest number of cells that one script returns, so that other clients
// of the server do not wait long for it.
const page = 1000

// List returns the cells with keys in [from, to), at most limit of them, in one round trip
// for each 1,000 cells. A field that is no cell is a [*stores.DamagedError]. A List may be
// answered by a replica.
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return engine.List(ctx, s.failed, func() ([]stores.Cell, []error, error) { return s.list(ctx, from, to, limit) })
}

func (s *Store) list(ctx context.Context, from, to string, limit int) (cells []stores.Cell, damaged []error, err error) {
	for len(cells) < limit && from < to {
		size := min(page, limit-len(cells))
		texts, err := engine.Wait(ctx, func() ([]any, error) {
			list := driver.NewCmd(ctx, "eval", listScript, 2, s.hash, s.index, from, to, size)
			list.SetFirstKeyPos(3)
			if err := s.client.Process(ctx, list); err != nil {
				s.reload(ctx)
				return nil, err
			}
			return list.Slice()
		})
		if err != nil {
			return nil, nil, err
		}
		var last string
		for i := 0; i+1 < len(texts); i += 2 {
			key, _ := texts[i].(string)
			last = key
			text, ok := texts[i+1].(string)
			if !ok {
				continue // the cell does not exist, or not any more
			}
			cell, err := s.parse(key, text)
			if err != nil {
				damaged = append(damaged, err)
				continue
			}
			cells = append(cells, cell)
		}
		if len(texts) < 2*size || last < from {
			break // in an index that another program has written, the keys may be in no order
		}
		from = last + "\x00"
	}
	return cells, damaged, nil
}

func (s *Store) parse(key, text string) (stores.Cell, error) {
	if err := stores.CheckKey(key); err != nil {
		return stores.Cell{}, &stores.DamagedError{Key: key, Problem: "it is in " + s.index, Err: err}
	}
	return engine.ParseCell(key, []byte(text))
}

// Read returns the cell of a key, in one round trip. Its error is a [*stores.DamagedError]
// if the field is no cell, and wraps [ErrReplicas] if too few replicas have received it.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	return engine.Read(ctx, s.failed, key, s.read)
}

func (s *Store) read(ctx context.Context, key string) (stores.Cell, error) {
	script := readScript
	if s.replicas > 0 {
		script = confirmedReadScript
	}
	text, err := engine.Wait(ctx, func() (string, error) {
		read := driver.NewCmd(ctx, "eval", script, 1, s.hash, key)
		if err := s.run(ctx, read, read); err != nil {
			return "", err
		}
		return read.Text()
	})
	if errors.Is(err, driver.Nil) {
		return stores.Cell{Key: key}, nil
	}
	if err != nil {
		return stores.Cell{}, err
	}
	return s.parse(key, text)
}

// Swap replaces the value of a cell, in one round trip. The command is sent once.
//
// Its error is a [*stores.DamagedError] if the field is no cell. If it wraps [ErrReplicas], the
// value was written, but too few replicas have received it.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return engine.Swap(ctx, s.failed, key, version, value, func(ctx context.Context, version uint64, next stores.Cell) error {
		text := string(engine.FormatCell(next.Version, next.Value))
		written, err := engine.Wait(ctx, func() (bool, error) { return s.write(ctx, key, version, text) })
		if err == nil && !written {
			err = stores.ErrConflict
		}
		return err
	})
}

// once is a command that the client does not send again after a failure.
type once struct{ *driver.Cmd }

func (once) NoRetry() bool { return true }

func (s *Store) write(ctx context.Context, key string, version uint64, text string) (bool, error) {
	swap := driver.NewCmd(ctx, "eval", swapScript, 2, s.hash, s.index, key, strconv.FormatUint(version, 10), text)
	err := s.run(ctx, once{swap}, swap)
	if text, ok := swap.Val().(string); ok {
		_, err := s.parse(key, text)
		return false, err
	}
	written, problem := swap.Int()
	if problem == nil && written == 0 {
		return false, nil // a conflict needs no replicas
	}
	if err == nil {
		err = problem
	}
	return err == nil, err
}

// run runs a script on the primary, and waits for the replicas. It sends cmd, which is
// eval or wraps it.
func (s *Store) run(ctx context.Context, cmd driver.Cmder, eval *driver.Cmd) error {
	eval.SetFirstKeyPos(3)
	err := s.send(ctx, cmd)
	if err != nil && !errors.Is(err, driver.Nil) {
		s.reload(ctx)
	}
	return err
}

// reload asks a cluster in the background which server has the cells: they may have moved.
// By itself, the driver asks only once a minute, or when a server tells it to. A server that
// is gone tells nothing.
func (s *Store) reload(ctx context.Context) {
	if cluster, ok := s.client.(*driver.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

func (s *Store) send(ctx context.Context, cmd driver.Cmder) error {
	if s.replicas == 0 {
		return s.client.Process(ctx, cmd)
	}
	// WAIT covers only the operations of its own connection, so both are sent together.
	// The cluster's client has a connection to each server.
	pipe := s.client.Pipeline
	if cluster, ok := s.client.(*driver.ClusterClient); ok {
		shard, err := cluster.MasterForKey(ctx, s.hash)
		if err != nil {
			return err
		}
		pipe = shard.Pipeline
	}
	p := pipe()
	_ = p.Process(ctx, cmd)
	wait := driver.NewIntCmd(ctx, "wait", s.replicas, replicaTimeout.Milliseconds())
	_ = p.Process(ctx, wait)
	_, err := p.Exec(ctx)
	if errors.Is(err, driver.Nil) {
		err = wait.Err() // Nil is an answer: there is no cell
	}
	if err != nil {
		return err
	}
	if got := wait.Val(); got < int64(s.replicas) {
		return fmt.Errorf("%w: %d of %d", ErrReplicas, got, s.replicas)
	}
	return nil
}

const replicaTimeout = time.Second

// failed returns the error of an operation.
func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	if _, moved := driver.IsMovedError(err); moved {
		err = fmt.Errorf("the server is one of a cluster, and another one has the cells: give redis.New a client of the cluster: %w", err)
	}
	return engine.Failed(ctx, s.engine(), op, key, s.namespace, refused(err))
}

// engine returns the name of the engine, and its servers if the client tells them.
func (s *Store) engine() string {
	switch client := s.client.(type) {
	case *driver.Client:
		return engine.At("redis", client.Options().Addr)
	case *driver.ClusterClient:
		return engine.At("redis", client.Options().Addrs...)
	}
	return "redis"
}

// refusals are the answers of the server that a retry does not change. They are searched in
// the whole text, because a server before 7 puts words before the error of a script.
var refusals = []struct {
	answer string
	advice error
}{
	{"NOAUTH ", errCredentials},
	{"WRONGPASS ", errCredentials},
	{"NOPERM ", errCredentials},
	{"can't run this command", errCredentials}, // in a script
	{"WRONGTYPE ", stores.Refused.New("another program has data under the name of the cells: use another namespace")},
	{"READONLY ", stores.Refused.New("the server is a replica, which takes no writes: connect to the primary")},
	{"ERR unknown command", stores.Refused.New("the server has no scripts: use another server")},
	{"ERR DB index is out of range", stores.Refused.New("the server has no such database: use another number in the URL")},
}

var errCredentials = stores.Refused.New("the server refuses the user, the password or a command: fix the URL, or allow the commands that the package doc lists")

// refused makes the server's refusal wrap [stores.Refused].
func refused(err error) error {
	if _, answered := errors.AsType[driver.Error](err); !answered {
		return err
	}
	for _, r := range refusals {
		if strings.Contains(err.Error(), r.answer) {
			return fmt.Errorf("%w: %w", r.advice, err)
		}
	}
	return err
}

// ErrReplicas is wrapped by the error of a Swap or a Read when too few replicas have
// confirmed the value within a second. The value was written, but a failover may lose it.
var ErrReplicas = stores.Passing.New("too few replicas have confirmed the last writes within a second: look at the replicas, or ask for fewer")
