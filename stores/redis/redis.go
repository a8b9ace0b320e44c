package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// New returns a Store of the cells of a namespace, in the server behind client: one
// server, or one under Sentinel, by the driver's NewFailoverClient. It sends nothing: the store connects at its first use.
//
// Each operation is one round trip, and a List one for each 1,000 cells; a replica may answer a
// List. Each Swap waits until that many replicas, 0 to 100, have received it, and each Read until they have
// received the cell that it returns, for at most a second. If fewer have received it by then, the error
// wraps [ErrReplicas], and a Swap has written the value.
//
// A name that [stores.CheckNamespace] refuses, a nil client, and a number of
// replicas out of range are errors.
//
// A Swap is sent once, without the client's retries: a write that was applied the first
// time would then report a conflict. An operation whose context has ended returns soon; unless
// the client's option ContextTimeoutEnabled is set, its command continues in the
// background until the client's ReadTimeout. With ContextTimeoutEnabled, or a short
// ReadTimeout, a server that does not answer may count more connections than the client's
// pool. The caller closes the client.
func New(client *driver.Client, namespace string, replicas int) (stores.Store, error) {
	if client == nil {
		return nil, errors.New("redis.New: no client")
	}
	if replicas < 0 || replicas > 100 {
		return nil, fmt.Errorf("redis.New: %d replicas, want 0 to 100", replicas)
	}
	if err := stores.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	return newStore(client, namespace, replicas), nil
}

func newStore(client *driver.Client, namespace string, replicas int) *engine.Skeleton[uint64] {
	hash := "tickflake:{" + namespace + "}"
	t := &texts{client: client, hash: hash, index: hash + ":keys", replicas: replicas}
	return &engine.Skeleton[uint64]{
		Texts: t, Namespace: namespace, Version: func(version uint64) uint64 { return version }, At: "redis at " + client.Options().Addr,
		Explain: func(_ context.Context, err error) error { return explain(err) }, Ask: t.ask,
	}
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

// texts are the fields of the hash, for the skeleton. The revision of a text is its version.
type texts struct {
	client   *driver.Client
	hash     string // of the cells' texts by key
	index    string // a sorted set of the keys, all with the same score
	replicas int
}

func (t *texts) Get(ctx context.Context, key string, _ bool) (engine.Text[uint64], error) {
	script, text := readScript, ""
	if t.replicas > 0 {
		script = confirmedReadScript
	}
	read := driver.NewCmd(ctx, "eval", script, 1, t.hash, key)
	err := t.send(ctx, read)
	if err == nil {
		text, err = read.Text()
	}
	if errors.Is(err, driver.Nil) {
		return engine.Text[uint64]{}, nil
	}
	return engine.Text[uint64]{Bytes: []byte(text), Found: true}, err
}

// once is a command that the client does not send again after a failure.
type once struct{ *driver.Cmd }

func (once) NoRetry() bool { return true }

func (t *texts) Put(ctx context.Context, key string, version uint64, text []byte) error {
	swap := driver.NewCmd(ctx, "eval", swapScript, 2, t.hash, t.index, key, strconv.FormatUint(version, 10), string(text))
	err := t.send(ctx, once{swap})
	if swap.Err() != nil { // an answer that was cut off has a value, too
		return cmp.Or(err, swap.Err())
	}
	switch is := swap.Val().(type) { // a conflict needs no replicas
	case string:
		if _, err := engine.ParseCell(key, []byte(is)); err != nil {
			return err
		}
		return stores.ErrConflict
	case int64:
		if is == 0 {
			return stores.ErrConflict
		}
	}
	_, problem := swap.Int() // of an answer that says nothing
	return cmp.Or(err, problem)
}

func (t *texts) Scan(ctx context.Context, from, to string, most int, found func(string, []byte)) (more bool, err error) {
	size := min(page, most)
	list := driver.NewCmd(ctx, "eval", listScript, 2, t.hash, t.index, from, to, size)
	if err := t.client.Process(ctx, list); err != nil {
		return false, err
	}
	texts, err := list.Slice()
	for i := 0; i+1 < len(texts); i += 2 {
		key, _ := texts[i].(string)
		text, ok := texts[i+1].(string)
		if !ok { // the cell does not exist, or not any more: no cell has this key, and the next page begins after it
			key += "\x00"
		}
		found(key, []byte(text))
	}
	return len(texts) == 2*size, err
}

// send runs a script, and waits for the replicas.
func (t *texts) send(ctx context.Context, cmd driver.Cmder) error {
	if t.replicas == 0 {
		return t.client.Process(ctx, cmd)
	}
	// WAIT covers only the operations of its own connection, so both are sent together.
	p := t.client.Pipeline()
	_ = p.Process(ctx, cmd)
	wait := driver.NewIntCmd(ctx, "wait", t.replicas, replicaTimeout.Milliseconds())
	_ = p.Process(ctx, wait)
	_, err := p.Exec(ctx)
	if errors.Is(err, driver.Nil) {
		err = wait.Err() // Nil is an answer: there is no cell
	}
	if err != nil {
		return err
	}
	if got := wait.Val(); got < int64(t.replicas) {
		return fmt.Errorf("%w: %d of %d", ErrReplicas, got, t.replicas)
	}
	return nil
}

const replicaTimeout = time.Second

// refusals are the answers of the server that have a kind, and what to do about them. They are searched in
// the whole text, because a server before 7 puts words before the error of a script.
var refusals = []struct {
	answer string
	advice error
}{
	{"NOAUTH ", errCredentials},
	{"WRONGPASS ", errCredentials},
	{"NOPERM ", errCredentials},
	{"can't run this command", errCredentials}, // in a script
	{"DENIED ", stores.Permanent.New("the server is in protected mode, which takes no connections from other machines: set a password for it")},
	{"WRONGTYPE ", stores.Permanent.New("another program has data under the name of the cells: use another namespace")},
	{"READONLY ", stores.Permanent.New("the server is a replica, which takes no writes: connect to the primary")},
	{"ERR unknown command", stores.Permanent.New("the server has no scripts: use another server")},
	{" is not supported: this is tickflake serve", stores.Permanent.New("the server is no store: use the URL of its --store")},
	{"redis: invalid reply", errOther},
	{"redis: can't parse", errOther},
	{"MOVED ", stores.Permanent.New("the server is one of a cluster, and another one has the cells: use a server that is in none, with Sentinel for its failover")},
	{"ERR DB index is out of range", stores.Permanent.New("the server has no such database: use another number in the URL")},

	// The server starts, stops, fails over, or refuses for load.
	{"LOADING ", stores.Transient.New("the server has started, and loads its data: wait")},
	{"max number of clients", stores.Transient.New("the server takes no more connections: raise maxclients, or let fewer clients connect")},
	{"OOM ", stores.Transient.New("the server's data fills maxmemory: raise it, or delete other data")},
	{"MISCONF ", stores.Transient.New("the server cannot write its data to its disk: look at the disk and the server's log")},
	{"NOREPLICAS ", stores.Transient.New("the primary has fewer replicas than min-replicas-to-write asks for, or they lag by more than min-replicas-max-lag: look at the replicas")},
	{"MASTERDOWN ", stores.Transient.New("the server is a replica that has lost its primary: wait for the failover, or connect to the primary")},
	{"BUSY ", stores.Transient.New("the server runs a slow script of another program: look for it, and end it by SCRIPT KILL")},
	{"CLUSTERDOWN ", stores.Transient.New("the cluster lacks servers, or none has the cells: look at CLUSTER INFO")},
	{"TRYAGAIN ", stores.Transient.New("the cluster moves the cells from one server to another: wait")},
	{"connection pool", stores.Transient.New("all connections of this process are in use: raise pool_size")}, // the driver's
}

var (
	errCredentials = stores.Permanent.New("the server refuses the user, the password or a command: fix the URL, or allow the commands that the package doc lists")
	errOther       = stores.Permanent.New("the server is no Redis server: fix the URL")
)

// explain gives the server's error its kind, and the advice.
func explain(err error) error {
	for _, r := range refusals {
		if strings.Contains(err.Error(), r.answer) {
			return fmt.Errorf("%w: %w", r.advice, err)
		}
	}
	return err
}

// ErrReplicas is wrapped by the error of a Swap or a Read when too few replicas have
// confirmed the value within a second. The value was written, but a failover may lose it.
var ErrReplicas = stores.Transient.New("too few replicas have confirmed the last writes within a second: look at the replicas, and ask for no more than can be promoted")

// ask asks the server for its settings, by CONFIG GET and INFO, in two round trips.
// Settings that neither tells, as on many rented servers, are unknown.
//
// With appendfsync everysec or no, the process of the server can be killed: the system
// has what was acknowledged. (While a sync takes longer than a second, everysec
// acknowledges up to two seconds of writes that the system has not got.) So both are
// risks, and appendonly no forgets. So do a maxmemory with an allkeys-… policy, which
// evicts cells while the server runs, and a replica that takes writes.
func (t *texts) ask(ctx context.Context) (found stores.Durability, err error) {
	if err := t.client.Ping(ctx).Err(); err != nil {
		return found, err
	}
	pipe := t.client.Pipeline()
	fsync, info := pipe.ConfigGet(ctx, "appendfsync"), pipe.Info(ctx)
	commands, _ := pipe.Exec(ctx) // each answer has its own error
	for _, command := range commands {
		// Only the server's refusal leaves a setting unknown.
		err := command.Err()
		if _, refusal := errors.AsType[driver.Error](err); err != nil && (!refusal || driver.IsLoadingError(err)) {
			return found, err
		}
	}
	facts := map[string]string{}
	for line := range strings.Lines(info.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		facts[name] = value
	}
	// Many rented servers refuse CONFIG, and INFO tells all but appendfsync.
	set := map[string]string{
		"appendonly":  map[string]string{"0": "no", "1": "yes"}[facts["aof_enabled"]],
		"appendfsync": fsync.Val()["appendfsync"], "maxmemory": facts["maxmemory"], "maxmemory-policy": facts["maxmemory_policy"],
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] == "" {
			found.Unknown = append(found.Unknown, fmt.Sprintf("%s is unknown, because the server does not tell its settings: ask its operator", name))
		}
	}
	if set["appendonly"] == "no" {
		found.Forgets = append(found.Forgets, "appendonly is no, so that a killed server loses all writes since the last snapshot: set it to yes (CONFIG SET appendonly yes, and in redis.conf)")
	} else if fsync := set["appendfsync"]; fsync == "everysec" || fsync == "no" {
		found.Risks = append(found.Risks, fmt.Sprintf("appendfsync is %s, so that a crash of the machine loses the last seconds: set it to always", fsync))
	}
	if policy := set["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") {
		text := fmt.Sprintf("maxmemory-policy is %s with maxmemory %s, so that the cells can be evicted: set it to noeviction", policy, set["maxmemory"])
		if bytes, _ := strconv.ParseUint(set["maxmemory"], 10, 64); bytes > 0 {
			found.Forgets = append(found.Forgets, text)
		} else {
			found.Risks = append(found.Risks, text)
		}
	}
	t.replication(facts, &found)
	return found, nil
}

// replication judges the lines of the command INFO.
func (t *texts) replication(facts map[string]string, found *stores.Durability) {
	n, err := strconv.Atoi(facts["connected_slaves"])
	switch {
	case err != nil:
		found.Unknown = append(found.Unknown, "the number of replicas is unknown, because the server does not tell: ask its operator")
	case facts["role"] != "master" && facts["slave_read_only"] == "0":
		found.Forgets = append(found.Forgets, "the server is a replica that takes writes, and loses them when it next syncs with its primary: connect to the primary")
	case facts["role"] != "master":
		found.Risks = append(found.Risks, fmt.Sprintf("the server's role is %q: connect to the primary", facts["role"]))
	case n < t.replicas:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and %d are to confirm each write, so that no write can succeed: add replicas, or ask for no more than can be promoted", n, t.replicas))
	case n > t.replicas:
		found.Risks = append(found.Risks, fmt.Sprintf("the server has %d replicas, and a write waits for %d of them, so that a failover to another loses the last writes: "+
			"set replicas, in the URL or in redis.New, to the number of those that can be promoted, %[1]d if all can", n, t.replicas))
	}
}
