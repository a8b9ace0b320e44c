package resp

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

// command is one that the server knows. It has ask if it is a request to the issuer, which is counted and logged, and else run.
type command struct {
	ask   func(c *conn, r *reply, args [][]byte) (items int64, err error) // an error is the reply
	run   func(c *conn, r *reply, args [][]byte) error                    // an error ends the connection
	least int                                                             // arguments, with the name
	most  int                                                             // 0: any number
	open  bool                                                            // before a token is given
}

// commands are by name in lower case.
var commands = map[string]*command{
	"id":     {ask: (*conn).takeID, least: 1, most: 3},
	"ids":    {ask: (*conn).takeIDs, least: 2, most: 2},
	"decode": {ask: (*conn).decode, least: 2, most: 2},
	"incr":   {ask: (*conn).incr, least: 2, most: 2},
	"incrby": {ask: (*conn).incr, least: 3, most: 3},
	"get":    {ask: (*conn).get, least: 2, most: 2},

	// So that clients and tools of Redis can connect.
	"ping":    {run: (*conn).ping, least: 1, most: 2},
	"echo":    {run: (*conn).echo, least: 2, most: 2},
	"hello":   {run: (*conn).hello, least: 1, open: true},
	"auth":    {run: (*conn).auth, least: 2, most: 3, open: true},
	"select":  {run: (*conn).selectDB, least: 2, most: 2},
	"quit":    {run: (*conn).leave, least: 1, open: true},
	"reset":   {run: (*conn).reset, least: 1, most: 1, open: true},
	"client":  {run: (*conn).clientCommand, least: 2},
	"info":    {run: (*conn).info, least: 1},
	"command": {run: (*conn).commandCommand, least: 1},
	"config":  {run: (*conn).config, least: 2},
}

// longestName is that of the longest name of a command that is looked up.
const longestName = 24

// execute carries out one command. Its error ends the connection.
func (c *conn) execute(args [][]byte) error {
	r, name := &c.buffer.reply, args[0]
	if len(name) == 2 && name[0]|0x20 == 'i' && name[1]|0x20 == 'd' && len(args) == 1 && c.client != nil {
		began := c.began()
		items, err := c.takeID(r, args)
		return c.done(r, name, began, items, err)
	}
	var lower [longestName]byte
	cmd := commands[string(lowerCase(lower[:0], name))]
	switch {
	case cmd == nil:
		c.refuseCommand(r, name)
	case c.client == nil && !cmd.open:
		return c.done(r, name, c.began(), 0, issuer.NoToken[issuer.RESP])
	case len(args) < cmd.least || cmd.most > 0 && len(args) > cmd.most:
		r.fail("ERR", "wrong number of arguments for '"+strings.ToLower(string(name))+"' command")
	case cmd.ask != nil:
		began := c.began()
		items, err := cmd.ask(c, r, args)
		return c.done(r, name, began, items, err)
	default:
		return cmd.run(c, r, args)
	}
	return nil
}

// lowerCase appends name to b in lower case, or nothing if it is longer than all names.
func lowerCase(b, name []byte) []byte {
	if len(name) > longestName {
		return b
	}
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}

// began returns the time for the duration of a request, if the log asks for it.
func (c *conn) began() (t time.Time) {
	if c.server.issuer.Logs() {
		t = time.Now()
	}
	return t
}

// done ends a request to the issuer, by the name of its command: it counts it, writes the reply to one that was refused,
// and makes the context ready for the next. Its error ends the connection.
func (c *conn) done(r *reply, name []byte, began time.Time, items int64, err error) error {
	if c.ctx.Started() {
		c.ctx.Cancel()
		c.ctx = c.server.issuer.Timeout(c.server.ctx)
	}
	if err == nil && began.IsZero() {
		c.requests++
		c.items += items
		return nil
	}
	if err != nil {
		items = 0
	}
	request := issuer.Request{Protocol: issuer.RESP, Method: strings.ToUpper(string(name)), Remote: c.nc.RemoteAddr().String(), Items: items, Err: err, Client: c.client}
	if !began.IsZero() {
		request.Duration = time.Since(began)
	}
	c.server.issuer.Done(request)
	if err == nil {
		return nil
	}
	r.refuse(err)
	if issuer.RefusalOf(err).Code == wire.Canceled {
		return err
	}
	return nil
}

var errAfter = issuer.Refuse(wire.BadInput, "syntax error in ID: want ID, ID AFTER id, or IDS n")

// takeID is ID [AFTER id].
func (c *conn) takeID(r *reply, args [][]byte) (items int64, err error) {
	var id, seen snowflake.ID
	switch {
	case len(args) == 1:
		id, err = c.server.issuer.ID(c.ctx, c.client)
	case len(args) != 3 || !equal(args[1], "AFTER"):
		err = errAfter
	default:
		if seen, err = issuer.ParseID(string(args[2])); err != nil {
			break
		}
		if c.buffer.runs, err = c.server.issuer.Runs(c.ctx, c.client, 1, seen, c.buffer.runs[:0]); err == nil {
			id = c.buffer.runs[0].First
		}
	}
	if err == nil {
		r.decimal(int64(id))
	}
	return 1, err
}

func (c *conn) takeIDs(r *reply, args [][]byte) (items int64, err error) {
	n, err := issuer.ParseCount(string(args[1]))
	if err != nil {
		return 0, err
	}
	b := c.buffer
	if b.runs, err = c.server.issuer.Runs(c.ctx, c.client, n, 0, b.runs[:0]); err != nil {
		return 0, err
	}
	r.array(int(n))
	for _, run := range b.runs {
		for k := range run.Count {
			if r.decimal(int64(run.At(k))); len(r.b) >= limit.Flush {
				if c.flush() != nil {
					return 0, errCut
				}
			}
		}
	}
	return n, nil
}

// errCut ends a connection amid an answer.
var errCut = issuer.Refuse(wire.Canceled, "the connection was cut off")

// decode writes one level of names and values, which both versions of the protocol can show as a map. Numbers are
// text.
func (c *conn) decode(r *reply, args [][]byte) (items int64, err error) {
	id, err := issuer.ParseID(string(args[1]))
	var d snowflake.Decoded
	if err == nil {
		d, err = c.server.issuer.Decode(id)
	}
	if err == nil {
		fields := []any{"id", d.ID.String(), "time", d.Time.UTC().Format(time.RFC3339Nano), "node", fmt.Sprint(d.Node)}
		for _, name := range slices.Sorted(maps.Keys(d.Parts)) {
			fields = append(fields, "node."+name, fmt.Sprint(d.Parts[name]))
		}
		fields = append(fields, "sequence", fmt.Sprint(d.Sequence))
		r.pairs(len(fields) / 2)
		r.all(fields...)
	}
	return 0, err
}

// sequence returns the sequence of a key. Keys of Redis often have colons, and names of
// sequences have none, so a dot stands for a colon.
func (c *conn) sequence(key []byte) string {
	if string(key) != c.key {
		c.key = string(key)
		c.sequenceName = strings.ReplaceAll(c.key, ":", ".")
	}
	return c.sequenceName
}

// incr is INCR key, and INCRBY key n.
func (c *conn) incr(r *reply, args [][]byte) (n int64, err error) {
	if n = 1; len(args) == 3 {
		n, err = issuer.ParseCount(string(args[2]))
	}
	if err == nil {
		var numbers issuer.Numbers
		if numbers, err = c.server.issuer.Number(c.ctx, c.client, c.sequence(args[1]), n); err == nil {
			r.integer(numbers.Last)
		}
	}
	return n, err
}

func (c *conn) get(r *reply, args [][]byte) (items int64, err error) {
	name := c.sequence(args[1])
	info, err := c.server.issuer.Inspect(c.ctx, c.client, name)
	switch {
	case err == nil && info.Definition.Period != (sequence.Period{}):
		err = issuer.Refuse(wire.BadInput, "sequence %s: %w, %s: ask for one of its periods", name, sequence.ErrByPeriod, info.Definition.Period)
	case err == nil:
		r.decimal(info.Last)
	case issuer.RefusalOf(err).Code == wire.NotFound && c.server.issuer.Creates(name):
		err = nil
		r.null()
	}
	return 0, err
}

func equal(arg []byte, name string) bool { return bytes.EqualFold(arg, []byte(name)) }

// refused are commands of Redis that this server does not have, by the reason.
var refused = map[string]string{
	"numbers are given out once and never taken back: use INCR, INCRBY and GET": "decr decrby set setnx setex psetex setrange mset msetnx getset getdel getex append del unlink incrbyfloat rename renamenx copy move restore flushall flushdb swapdb",
	"a sequence does not expire": "expire expireat pexpire pexpireat persist ttl pttl expiretime pexpiretime",
	"there are no transactions: send the commands as a pipeline, without MULTI and EXEC": "multi exec discard watch unwatch",
	"this is tickflake serve, and no store: it has no scripts; send a pipeline":          "eval evalsha eval_ro evalsha_ro script function fcall fcall_ro",
	"this is no cluster: use a client for a single server":                               "cluster readonly readwrite asking sentinel",
	"there are no channels and no messages":                                              "subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe publish spublish pubsub monitor",
	"there are no replicas: servers share a store":                                       "replicaof slaveof psync sync replconf role wait waitaof failover",
	"keys are not listed here: use 'tickflake sequence list'":                            "keys scan exists type dbsize randomkey object dump touch mget strlen getrange substr",
	"use the settings and the metrics of 'tickflake serve'":                              "shutdown save bgsave bgrewriteaof lastsave acl debug slowlog latency memory module time migrate lolwut hotkeys",
	"there are no lists, sets, hashes, streams or other values, only sequences":          "lpush lpushx rpush rpushx lpop rpop lrange llen lindex lset lrem ltrim linsert lpos lmove lmpop rpoplpush blpop brpop blmove blmpop brpoplpush sadd srem smembers sismember smismember scard spop srandmember smove sinter sintercard sinterstore sunion sunionstore sdiff sdiffstore sscan hset hsetnx hmset hget hmget hgetall hdel hexists hincrby hincrbyfloat hkeys hvals hlen hstrlen hrandfield hscan hexpire httl hpersist zadd zrem zrange zrangestore zrevrange zrangebyscore zrevrangebyscore zrangebylex zrevrangebylex zcard zcount zlexcount zscore zmscore zrank zrevrank zincrby zpopmin zpopmax bzpopmin bzpopmax zmpop bzmpop zunion zunionstore zinter zinterstore zintercard zdiff zdiffstore zremrangebyrank zremrangebyscore zremrangebylex zrandmember zscan xadd xlen xrange xrevrange xread xreadgroup xgroup xack xdel xtrim xclaim xautoclaim xpending xinfo xsetid setbit getbit bitcount bitop bitpos bitfield bitfield_ro pfadd pfcount pfmerge pfdebug pfselftest geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore sort sort_ro",
}

// reasons are those of refused by command.
var reasons = func() map[string]string {
	by := make(map[string]string)
	for reason, names := range refused {
		for _, name := range strings.Fields(names) {
			by[name] = reason
		}
	}
	return by
}()

// refuseCommand writes the error for a command that the server does not have. It never shows
// the arguments: one of them may be a token that was sent to a misspelt AUTH.
func (c *conn) refuseCommand(r *reply, name []byte) {
	var lower [longestName]byte
	if reason := reasons[string(lowerCase(lower[:0], name))]; reason != "" {
		r.fail("ERR", strings.ToUpper(string(name))+" is not supported: "+reason)
		return
	}
	r.fail("ERR", "unknown command "+printable(name))
}
