package resp

import "strings"

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
