package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Store is a [lease.Store] on ZooKeeper. It is safe for use by several goroutines at
// once.
type Store struct {
	conn      *zk.Conn
	namespace string
	root      string // the znode above the cells
	acl       []zk.ACL
	servers   func() []string // for messages
	dialed    *dials
	close     func() error
}

var _ lease.Store = (*Store)(nil)

// New returns a Store that uses a connection of the caller's, who closes it when no
// Store uses it any more. It keeps the cells of a namespace in the znodes
// /NAMESPACE/NODE; the error of a bad name is a [*lease.NamespaceError], and a nil
// connection is an error, too.
//
// The znodes that it makes have the given access rights, or are open to all if there
// are none.
//
// The driver resolves the servers' names only once, unless the connection was made
// with a zk.HostProvider that does better; and it logs each lost connection to the
// package log, unless made with zk.WithLogger.
func New(conn *zk.Conn, namespace string, acl ...zk.ACL) (*Store, error) {
	return newStore(conn, "", namespace, acl)
}

func newStore(conn *zk.Conn, chroot, namespace string, acl []zk.ACL) (*Store, error) {
	if err := lease.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errors.New("zookeeper: New needs a connection, but was given nil")
	}
	if len(acl) == 0 {
		acl = zk.WorldACL(zk.PermAll)
	}
	return &Store{
		conn:      conn,
		namespace: namespace,
		root:      chroot + "/" + namespace,
		acl:       acl,
		servers:   func() []string { return []string{conn.Server()} },
		dialed:    new(dials),
		close:     func() error { return nil },
	}, nil
}

// Close ends what [Open] opened. It does nothing to a connection given to [New], and
// returns nil.
func (s *Store) Close() error { return s.close() }

// List returns all cells: one request for their names, and then one for each, of
// which up to 64 are on their way at a time. It may be out of date. Its error wraps the
// driver's or the context's.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	cells, err := await(ctx, func() ([]lease.Cell, error) { return s.list(ctx) })
	if err != nil {
		return nil, s.failed(ctx, "list", -1, err)
	}
	return cells, nil
}

func (s *Store) list(ctx context.Context) ([]lease.Cell, error) {
	names, _, err := s.conn.Children(s.root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	const workers = 64
	var (
		mu    sync.Mutex
		cells []lease.Cell
		errs  error
		busy  sync.WaitGroup
		work  = make(chan int64)
	)
	for range min(workers, len(names)) {
		busy.Go(func() {
			for node := range work {
				cell, err := s.get(node)
				mu.Lock()
				switch {
				case err != nil:
					errs = err // one will do
				case cell.Version != 0: // it was not deleted meanwhile
					cells = append(cells, cell)
				}
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		if node, ok := remote.NodeOf(name); ok && ctx.Err() == nil {
			work <- node
		}
	}
	close(work)
	busy.Wait()
	return cells, errors.Join(errs, ctx.Err())
}

// get returns what the server that we are connected to has for a cell.
func (s *Store) get(node int64) (lease.Cell, error) {
	value, stat, err := s.conn.Get(s.path(node))
	if errors.Is(err, zk.ErrNoNode) {
		return lease.Cell{Node: node}, nil
	}
	if err != nil {
		return lease.Cell{}, err
	}
	return lease.Cell{Node: node, Version: version(stat), Value: value}, nil
}

// Read returns the cell of a node number, in two round trips. It is linearizable: it
// first writes to the znode of the namespace, which takes a majority of the servers,
// and then reads from a server that has seen this write. Its error wraps the driver's
// or the context's, or says that no cell can have that node number.
//
// The driver's Sync would be no substitute: a leader answers it alone, even one that
// has been deposed and does not yet know.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	if err := remote.CheckNode(node); err != nil {
		return lease.Cell{}, s.failed(ctx, "read", node, err)
	}
	cell, err := await(ctx, func() (lease.Cell, error) {
		// That there is no namespace is found by a majority, too.
		_, err := s.conn.Set(s.root, nil, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return lease.Cell{Node: node}, nil
		}
		if err == nil {
			err = ctx.Err() // if nobody waits any more
		}
		if err != nil {
			return lease.Cell{}, err
		}
		return s.get(node)
	})
	if err != nil {
		return lease.Cell{}, s.failed(ctx, "read", node, err)
	}
	return cell, nil
}

// Swap replaces the value of a cell if its version still is old.Version, in one round
// trip; the first one in a namespace makes the znodes above. The version is the
// znode's data version plus one. It begins again if the znode is deleted, so cells
// must not be.
//
// Its error wraps [lease.ErrConflict] if it found another version and changed nothing;
// the driver sends each write at most once, so that is never with a first attempt of
// its own. After any other, which wraps the driver's or the context's, it is not known
// whether the value was, or will be, written.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if err := remote.CheckNode(old.Node); err != nil {
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, err)
	}
	value = bytes.Clone(value) // the driver may read it after we have returned
	next, err := await(ctx, func() (uint64, error) {
		if old.Version == 0 {
			return 1, s.create(ctx, s.path(old.Node), value)
		}
		// -1 would be taken for any version. The server counts beyond the largest
		// int32 to the smallest.
		if old.Version > math.MaxUint32 {
			return 0, zk.ErrBadVersion
		}
		stat, err := s.conn.Set(s.path(old.Node), value, int32(uint32(old.Version-1)))
		if err != nil {
			return 0, err
		}
		return version(stat), nil
	})
	switch {
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, fmt.Errorf("%w (%w)", lease.ErrConflict, err))
	case err != nil:
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, err)
	}
	return lease.Cell{Node: old.Node, Version: next, Value: bytes.Clone(value)}, nil
}

// create makes a znode, and those above it that are missing. It asks for the latter
// only when told so, because it may have no right to.
func (s *Store) create(ctx context.Context, name string, value []byte) error {
	_, err := s.conn.Create(name, value, zk.FlagPersistent, s.acl)
	if !errors.Is(err, zk.ErrNoNode) || path.Dir(name) == "/" {
		return err
	}
	if err := s.create(ctx, path.Dir(name), nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create znode %s: %w", path.Dir(name), err)
	}
	if err := ctx.Err(); err != nil {
		return err // nobody waits any more
	}
	if _, err = s.conn.Create(name, value, zk.FlagPersistent, s.acl); errors.Is(err, zk.ErrNoNode) {
		return errDeleted
	}
	return err
}

// errDeleted is not zk.ErrNoNode, which Swap takes for a conflict.
var errDeleted = errors.New("the znode above it was deleted as soon as it was made")

func (s *Store) path(node int64) string { return s.root + "/" + remote.Key(node) }

func version(stat *zk.Stat) uint64 { return uint64(uint32(stat.Version)) + 1 }

// await runs f, whose calls of the driver take no context, and returns when it has,
// or when ctx has ended. Then f goes on alone until the driver lets it: when the
// answer comes, the connection is lost, no server can be reached or the connection is
// closed, within about a minute. It must not touch what is the caller's.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// unspoken replaces what the driver would log: each lost connection. What matters is
// in the errors.
type unspoken struct{}

func (unspoken) Printf(string, ...any) {}

// servers offers the servers of a URL in turn, as the driver's own HostProvider does,
// but by name, so that one that comes back with another address is found, and that TLS
// knows whom it speaks to.
type servers struct {
	mu         sync.Mutex
	hosts      []string
	next, last int // last: where a round ends
}

func (h *servers) Init(hosts []string) error {
	h.hosts, h.next, h.last = hosts, 0, -1
	return nil
}

func (h *servers) Len() int { return len(h.hosts) }

func (h *servers) Next() (host string, round bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.next
	h.next = (i + 1) % len(h.hosts)
	round = i == h.last
	if h.last < 0 {
		h.last = 0
	}
	return h.hosts[i], round
}

func (h *servers) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = (h.next + len(h.hosts) - 1) % len(h.hosts)
}
