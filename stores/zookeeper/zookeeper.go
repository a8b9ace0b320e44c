package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
)

// Store is a [stores.Store] on ZooKeeper. It is safe for use by several goroutines at
// once.
type Store struct {
	conn      *zk.Conn
	namespace string
	root      string // the znode above the cells
	acl       []zk.ACL
	servers   func() []string // for messages
	dialer    *stores.Dialer  // unused by a connection given to New
	close     func() error
}

var _ stores.Store = (*Store)(nil)

// New returns a Store that uses the caller's connection. The caller closes it when no
// Store uses it any more. It keeps the cells of a namespace in znodes below /NAMESPACE; a
// name that [stores.CheckNamespace] refuses and a nil connection are errors.
//
// The znodes that it makes have the given access rights, or are open to all if there
// are none.
//
// The driver resolves the servers' names only once, unless the connection has its own
// zk.HostProvider. It waits for the first answer of a server that hangs for nearly seven
// times the session's time-out, unless its zk.Dialer bounds that. It logs each lost
// connection to the package log, unless the connection was made with zk.WithLogger.
func New(conn *zk.Conn, namespace string, acl ...zk.ACL) (*Store, error) {
	return newStore(conn, "", namespace, acl)
}

func newStore(conn *zk.Conn, chroot, namespace string, acl []zk.ACL) (*Store, error) {
	if err := stores.CheckNamespace(namespace); err != nil {
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
		dialer:    new(stores.Dialer),
		close:     func() error { return nil },
	}, nil
}

// Close ends the connection of a Store that was opened by a URL, and returns after at most
// a second. It does nothing to a connection given to [New], and returns nil.
func (s *Store) Close() error { return s.close() }

// List returns the cells with keys in [from, to), at most limit of them: one request for
// the names of all cells, and then one for each cell that it returns, with up to 64 in
// flight. It may be out of date. A text that is no cell is a
// [*stores.DamagedError].
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if limit < 1 || from >= to {
		return nil, nil
	}
	type listed struct {
		cells   []stores.Cell
		damaged []error
	}
	l, err := stores.Wait(ctx, func() (l listed, err error) {
		l.cells, l.damaged, err = s.list(ctx, from, to, limit)
		return l, err
	})
	if err == nil {
		err = stores.JoinDamaged(l.damaged)
	}
	if err != nil {
		return l.cells, s.failed(ctx, "list", "", err)
	}
	return l.cells, nil
}

func (s *Store) list(ctx context.Context, from, to string, limit int) (cells []stores.Cell, damaged []error, err error) {
	names, _, err := s.conn.Children(s.root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var keys []string
	for _, name := range names {
		key := strings.ReplaceAll(name, "+", "/")
		if stores.CheckKey(key) == nil && from <= key && key < to {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	// A second round is needed if a cell of the first is damaged or gone.
	for len(keys) > 0 && len(cells) < limit {
		n := min(len(keys), limit-len(cells))
		for _, got := range s.getAll(ctx, keys[:n]) {
			switch {
			case errors.Is(got.err, stores.ErrDamaged):
				damaged = append(damaged, got.err)
			case got.err != nil:
				return nil, nil, got.err
			case got.cell.Version != 0:
				cells = append(cells, got.cell)
			}
		}
		keys = keys[n:]
	}
	return cells, damaged, nil
}

// got is a result of get.
type got struct {
	cell stores.Cell
	err  error
}

// getAll returns the result of get for each key.
func (s *Store) getAll(ctx context.Context, keys []string) []got {
	const workers = 64
	all := make([]got, len(keys))
	var next atomic.Int64 // the index of the next key that no worker has taken
	var busy sync.WaitGroup
	for range min(workers, len(keys)) {
		busy.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				if all[i].err = ctx.Err(); all[i].err == nil {
					all[i].cell, _, all[i].err = s.get(keys[i])
				}
			}
		})
	}
	busy.Wait()
	return all
}

// get returns a cell as the connected server has it, and its data version.
func (s *Store) get(key string) (stores.Cell, int32, error) {
	text, stat, err := s.conn.Get(s.path(key))
	if errors.Is(err, zk.ErrNoNode) {
		return stores.Cell{Key: key}, 0, nil
	}
	if err != nil {
		return stores.Cell{}, 0, err
	}
	cell, err := stores.ParseCell(key, text)
	return cell, stat.Version, err
}

// Read returns the cell of a key, in two round trips. It is linearizable: it first writes
// to the znode of the namespace, which takes a majority of the servers, and then reads
// from a server that has seen this write.
//
// The driver's Sync would not do: the leader answers it alone, even a deposed leader
// that does not know yet.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	err := stores.CheckKey(key)
	var cell stores.Cell
	if err == nil {
		cell, err = stores.Wait(ctx, func() (stores.Cell, error) {
			cell, _, err := s.latest(ctx, key)
			return cell, err
		})
	}
	if err != nil {
		return stores.Cell{}, s.failed(ctx, "read", key, err)
	}
	return cell, nil
}

// latest returns the latest state of a cell, and its data version.
func (s *Store) latest(ctx context.Context, key string) (stores.Cell, int32, error) {
	_, err := s.conn.Set(s.root, nil, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return stores.Cell{Key: key}, 0, nil // a majority agrees that there is no namespace
	}
	if err == nil {
		err = ctx.Err() // if the caller has gone
	}
	if err != nil {
		return stores.Cell{}, 0, err
	}
	return s.get(key)
}

// Swap replaces the value of a cell if it has that version. A new cell
// takes one round trip, and the first one in a namespace makes the znodes above. Any
// other takes two: the first compares the version, and the second writes on the condition
// that the znode's data version is that of the first. The data version alone would not
// do, since it goes back when an older state is restored, and begins again when the znode
// is deleted. The driver sends each write at most once.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := stores.NextVersion(key, version, value)
	if err == nil {
		text := stores.FormatCell(next, value)
		_, err = stores.Wait(ctx, func() (struct{}, error) { return struct{}{}, s.swap(ctx, key, version, text) })
	}
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		err = fmt.Errorf("%w (%w)", stores.ErrConflict, err)
	}
	if err != nil {
		return 0, s.failed(ctx, "swap", key, err)
	}
	return next, nil
}

func (s *Store) swap(ctx context.Context, key string, version uint64, text []byte) error {
	if version == 0 {
		err := s.create(ctx, s.path(key), text)
		if errors.Is(err, zk.ErrNodeExists) {
			if _, _, damaged := s.get(key); errors.Is(damaged, stores.ErrDamaged) {
				return damaged
			}
		}
		return err
	}
	cell, at, err := s.get(key)
	if err == nil && cell.Version != version {
		// The server may lag behind.
		cell, at, err = s.latest(ctx, key)
	}
	if err == nil {
		err = ctx.Err() // if the caller has gone
	}
	if err != nil {
		return err
	}
	if cell.Version != version {
		return stores.ErrConflict
	}
	if at == -1 { // to the driver, -1 means any version
		return errors.New("the znode was written 2³²-1 times, and cannot be written any more")
	}
	_, err = s.conn.Set(s.path(key), text, at)
	return err
}

// create makes a znode and its missing parents. It makes a parent only when the server
// says that it is missing, because the user may have no right to make it.
func (s *Store) create(ctx context.Context, name string, value []byte) error {
	_, err := s.conn.Create(name, value, zk.FlagPersistent, s.acl)
	if !errors.Is(err, zk.ErrNoNode) || path.Dir(name) == "/" {
		return err
	}
	if err := s.create(ctx, path.Dir(name), nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create znode %s: %w", path.Dir(name), err)
	}
	if err := ctx.Err(); err != nil {
		return err // the caller has gone
	}
	if _, err = s.conn.Create(name, value, zk.FlagPersistent, s.acl); errors.Is(err, zk.ErrNoNode) {
		return errDeleted
	}
	return err
}

// errDeleted stands for a zk.ErrNoNode that is no conflict: Swap would report one.
var errDeleted = errors.New("the znode above it was deleted as soon as it was made")

func (s *Store) path(key string) string { return s.root + "/" + strings.ReplaceAll(key, "/", "+") }

// unspoken discards the driver's log of lost connections. The errors of the methods report
// them.
type unspoken struct{}

func (unspoken) Printf(string, ...any) {}

// servers offers the servers of a URL in turn, as the driver's own HostProvider does,
// but by name. So a server that returns with another address is found, and TLS
// can check the name.
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
