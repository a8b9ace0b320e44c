package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Store is a [lease.Store] in a hash of a Redis server. It is safe for use by several
// goroutines at once.
type Store struct {
	client    driver.UniversalClient
	opened    bool // by Open
	namespace string
	key       string
	replicas  int
}

var _ lease.Store = (*Store)(nil)

// Option is an option of [New].
type Option func(*Store) error

// WithReplicas makes each Swap wait until n replicas, 0 to 100, have received it, and
// each Read until they have received what it returns, for at most a second. If fewer
// have by then, the error wraps [ErrReplicas]. Any other n makes New return an error that
// says so. The default is 0.
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
// server, one under Sentinel, or a cluster. It sends nothing; the first use does.
//
// The error of a bad name is a [*lease.NamespaceError]; a nil client or option, and a
// number of replicas that cannot be, are errors, too. So is a [driver.Ring], for it
// would look for the cells on another server when theirs is down.
//
// The client's retries are not used for writes, since one that was applied the first
// time would then report a conflict. Reads go to the primary even if the client
// prefers replicas. An operation whose context has ended returns at once; unless
// the client's option ContextTimeoutEnabled is set, its command is waited for in the
// background until the client's ReadTimeout.
func New(client driver.UniversalClient, namespace string, opts ...Option) (*Store, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("redis.New: no client")
	}
	if _, ok := client.(*driver.Ring); ok {
		return nil, errors.New("redis.New: a Ring moves keys to other servers while theirs is down, and so forgets cells: use a client of one server, or of a cluster")
	}
	if err := lease.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	s := &Store{client: client, namespace: namespace, key: "tickflake:{" + namespace + "}"}
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

// Close closes what Open has opened, and returns the driver's error. A Store that New
// returned leaves the caller's client open. It may be called more than once.
func (s *Store) Close() error {
	if !s.opened {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
		return err
	}
	return nil
}

// A field's text is the version, a space and the value.
const (
	// The HDEL deletes nothing, for no field has that name. But being a write, it is
	// refused by a replica, which may be behind, and by a primary that misses the
	// replicas it needs, which may have been replaced. And as a script, no client takes it
	// for something to ask a replica for.
	readScript = `redis.call('HDEL', KEYS[1], '')
return redis.call('HGET', KEYS[1], ARGV[1])`

	swapScript = `local cell = redis.call('HGET', KEYS[1], ARGV[1])
local version = '0'
if cell then
  version = string.match(cell, '^([1-9]%d*) ')
  if not version then return redis.error_reply('ERR TICKFLAKE the field is no cell') end
end
if version ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`
)

// List returns all cells of the namespace, in one round trip. Its error wraps the
// driver's or the context's; or a [*CellError] for each field that is no cell, and then
// comes with the cells of the others.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	fields, err := within(ctx, func() (map[string]string, error) {
		return s.client.HGetAll(ctx, s.key).Result()
	})
	if err != nil {
		return nil, s.fail("list the cells", err)
	}
	cells := make([]lease.Cell, 0, len(fields))
	var damaged []error
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		cell, err := parse(field, fields[field])
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		cells = append(cells, cell)
	}
	if len(damaged) > 0 {
		return cells, s.fail("list the cells", errors.Join(damaged...))
	}
	return cells, nil
}

// Read returns the cell of a node number, in one round trip. Its error wraps a
// [*CellError] if what is kept is no cell, [ErrReplicas] if too few replicas have received
// it, the driver's or the context's.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	field := strconv.FormatInt(node, 10)
	text, err := within(ctx, func() (string, error) {
		read := driver.NewCmd(ctx, "eval", readScript, 1, s.key, field)
		if err := s.run(ctx, read, read); err != nil {
			return "", err
		}
		return read.Text()
	})
	if errors.Is(err, driver.Nil) {
		return lease.Cell{Node: node}, nil
	}
	var cell lease.Cell
	if err == nil {
		cell, err = parse(field, text)
	}
	if err != nil {
		return lease.Cell{}, s.fail("read the cell of node "+field, err)
	}
	return cell, nil
}

func parse(field, text string) (lease.Cell, error) {
	version, value, ok := strings.Cut(text, " ")
	var cell lease.Cell
	var err1, err2 error
	cell.Node, err1 = strconv.ParseInt(field, 10, 64)
	cell.Version, err2 = strconv.ParseUint(version, 10, 63)
	// No two fields may be the same cell, as 7 and 07 would be.
	canonical := remote.CheckNode(cell.Node) == nil && field == strconv.FormatInt(cell.Node, 10)
	if !ok || err1 != nil || err2 != nil || cell.Version == 0 || !canonical {
		return lease.Cell{}, &CellError{Field: field}
	}
	cell.Value = []byte(value)
	return cell, nil
}

// versionStep is the greatest step from one version of a cell to the next. Random
// ones leave room for about 2³² writes to each cell.
const versionStep = 1 << 32

const lastVersion = 1<<63 - 1

// Swap replaces the value of a cell, in one round trip. The command is sent once.
//
// Its error wraps [lease.ErrConflict] if the cell has another version, and nothing was
// changed; [ErrReplicas] if it was written and too few replicas have received it. A node
// number or value that no cell may have is an error, with nothing sent. After any
// other, which wraps the driver's or the context's, it is not known whether the value
// was, or will be, written.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	op := fmt.Sprintf("swap the cell of node %d", old.Node)
	cell := lease.Cell{Node: old.Node, Value: append([]byte(nil), value...)}
	if err := remote.CheckCell(cell, true); err != nil {
		return lease.Cell{}, s.fail(op, err)
	}
	if old.Version > lastVersion-versionStep {
		return lease.Cell{}, s.fail(op, lease.ErrConflict)
	}
	cell.Version = old.Version + 1 + rand.Uint64N(versionStep)
	text := strconv.FormatUint(cell.Version, 10) + " " + string(cell.Value)

	written, err := within(ctx, func() (bool, error) {
		return s.write(ctx, old, text)
	})
	if err == nil && !written {
		err = lease.ErrConflict
	}
	if err != nil {
		return lease.Cell{}, s.fail(op, err)
	}
	return cell, nil
}

// once is a command that the client does not send again after a failure.
type once struct{ *driver.Cmd }

func (once) NoRetry() bool { return true }

func (s *Store) write(ctx context.Context, old lease.Cell, text string) (bool, error) {
	swap := driver.NewCmd(ctx, "eval", swapScript, 1, s.key, old.Node, strconv.FormatUint(old.Version, 10), text)
	err := s.run(ctx, once{swap}, swap)
	written, problem := swap.Int()
	if problem == nil && written == 0 {
		return false, nil // whatever the replicas have
	}
	if err == nil {
		err = problem
	}
	return err == nil, err
}

// run runs a script on the primary, and waits for the replicas. cmd is what is to be
// sent, eval or one around it.
func (s *Store) run(ctx context.Context, cmd driver.Cmder, eval *driver.Cmd) error {
	eval.SetFirstKeyPos(3)
	if s.replicas == 0 {
		return s.client.Process(ctx, cmd)
	}
	// WAIT is about what its own connection has done and seen, so both go out together.
	// The cluster's client has a connection to each server.
	pipe := s.client.Pipeline
	cluster, clustered := s.client.(*driver.ClusterClient)
	if clustered {
		shard, err := cluster.MasterForKey(ctx, s.key)
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
		err = wait.Err() // that there is no cell is an answer
	}
	if err != nil {
		if clustered {
			cluster.ReloadState(ctx) // the cells may have moved to another server
		}
		return err
	}
	if got := wait.Val(); got < int64(s.replicas) {
		return fmt.Errorf("%w: %d of %d", ErrReplicas, got, s.replicas)
	}
	return nil
}

const replicaTimeout = time.Second

// within returns what do returns, or the context's error as soon as it has ended. The
// client's commands do not end with a context but with its deadline, at best; then their
// error is that of a connection, and may come before the context's.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		deadline, ok := ctx.Deadline()
		if o.err != nil && ok && !time.Now().Before(deadline) && !errors.Is(o.err, context.DeadlineExceeded) {
			o.err = fmt.Errorf("%w: %w", context.DeadlineExceeded, o.err)
		}
		return o.value, o.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
