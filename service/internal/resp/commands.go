package resp

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

// command is one that the server knows. It has ask if it is a request to the issuer, which is counted and logged, and else run.
type command struct {
	ask   func(c *conn, r *reply, args [][]byte) (items int64, err error) // an error is the reply
	run   func(c *conn, r *reply, args [][]byte)
	least int // arguments, with the name
	most  int
	open  bool // before a token is given
}

// commands are by name in lower case.
var commands = map[string]*command{
	"id":     {ask: (*conn).takeID, least: 1, most: 3},
	"ids":    {ask: (*conn).takeIDs, least: 2, most: 2},
	"decode": {ask: (*conn).decode, least: 2, most: 2},
	"incr":   {ask: (*conn).incr, least: 2, most: 2},
	"incrby": {ask: (*conn).incr, least: 3, most: 3},
	"get":    {ask: (*conn).get, least: 2, most: 2},

	// What clients of Redis send when they connect, look after a connection, or leave.
	"hello":  {run: (*conn).hello, least: 1, most: limit.Arguments, open: true},
	"auth":   {run: (*conn).auth, least: 2, most: 3, open: true},
	"client": {run: (*conn).clientCommand, least: 2, most: limit.Arguments},
	"ping":   {run: (*conn).ping, least: 1, most: 2},
	"echo":   {run: (*conn).echo, least: 2, most: 2},
	"info":   {run: (*conn).info, least: 1, most: limit.Arguments},
	"quit":   {run: (*conn).leave, least: 1, most: 1, open: true},
}

// execute carries out one command. Its error ends the connection.
func (c *conn) execute(args [][]byte) error {
	r, name := &c.buffer.reply, args[0]
	if len(name) == 2 && name[0]|0x20 == 'i' && name[1]|0x20 == 'd' && len(args) == 1 && c.client != nil { // costs no look at the table
		items, err := c.takeID(r, args)
		return c.done(r, name, items, err)
	}
	var lower [6]byte // the length of the longest name
	cmd := commands[string(lowerCase(lower[:0], name))]
	switch {
	case cmd == nil: // arguments are not shown: one may be a token that was sent to a misspelt AUTH
		r.fail("ERR", "unknown command "+printable(name)+": this is tickflake serve, and no store: it has ID, IDS, DECODE, INCR, INCRBY and GET")
	case c.client == nil && !cmd.open:
		return c.done(r, name, 0, issuer.NoToken[issuer.RESP])
	case len(args) < cmd.least || len(args) > cmd.most:
		r.fail("ERR", "wrong number of arguments for '"+strings.ToLower(string(name))+"' command")
	case cmd.ask != nil:
		items, err := cmd.ask(c, r, args)
		return c.done(r, name, items, err)
	default:
		cmd.run(c, r, args)
	}
	return nil
}

// lowerCase appends name to b in lower case, or nothing if it is longer than b can be.
func lowerCase(b, name []byte) []byte {
	if len(name) > cap(b) {
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

// done ends a request to the issuer, by the name of its command: it counts it, writes the reply to one that was refused,
// and makes the context ready for the next. Its error ends the connection.
func (c *conn) done(r *reply, name []byte, items int64, err error) error {
	if c.ctx.Started() {
		c.ctx.Cancel()
		c.ctx = c.server.issuer.Timeout(c.server.ctx)
	}
	if err == nil {
		c.requests++
		c.items += items
		return nil
	}
	c.server.issuer.Done(issuer.Request{Protocol: issuer.RESP, Method: strings.ToUpper(string(name)), Remote: c.nc.RemoteAddr().String(), Err: err, Client: c.client})
	r.refuse(err)
	if issuer.RefusalOf(err).Code == wire.Canceled {
		return err
	}
	return nil
}

// takeID is ID [AFTER id].
func (c *conn) takeID(r *reply, args [][]byte) (items int64, err error) {
	var id, seen snowflake.ID
	switch {
	case len(args) == 1:
		id, err = c.server.issuer.ID(c.ctx, c.client)
	case len(args) != 3 || !equal(args[1], "AFTER"):
		err = issuer.Refuse(wire.BadInput, "syntax error in ID: want ID, ID AFTER id, or IDS n")
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
			if r.decimal(int64(run.At(k))); len(r.b) >= limit.Flush && c.flush() != nil {
				return 0, issuer.Refuse(wire.Canceled, "the connection was cut off")
			}
		}
	}
	return n, nil
}

// pairs begins a map of n names and their values. In RESP2 it is an array of both.
func (c *conn) pairs(r *reply, n int) {
	if c.three {
		r.header('%', int64(n))
	} else {
		r.array(2 * n)
	}
}

// decode writes one level of names and values, which both versions of the protocol can show as a map. Numbers are
// text.
func (c *conn) decode(r *reply, args [][]byte) (items int64, err error) {
	id, err := issuer.ParseID(string(args[1]))
	if err != nil {
		return 0, err
	}
	d, err := c.server.issuer.Decode(id)
	if err != nil {
		return 0, err
	}
	fields := []any{"id", d.ID.String(), "time", d.Time.UTC().Format(time.RFC3339Nano), "node", fmt.Sprint(d.Node)}
	for _, name := range slices.Sorted(maps.Keys(d.Parts)) {
		fields = append(fields, "node."+name, fmt.Sprint(d.Parts[name]))
	}
	fields = append(fields, "sequence", fmt.Sprint(d.Sequence))
	c.pairs(r, len(fields)/2)
	r.all(fields...)
	return 0, nil
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

// get writes a number as text, as Redis does, and null for a sequence that a rule will create.
func (c *conn) get(r *reply, args [][]byte) (items int64, err error) {
	last, exists, err := c.server.issuer.Last(c.ctx, c.client, c.sequence(args[1]))
	switch {
	case exists:
		r.decimal(last)
	case err == nil && c.three:
		r.line('_', "")
	case err == nil:
		r.line('$', "-1")
	}
	return 0, err
}

// spoken is the version of Redis whose protocol this is. Clients decide by it what to send.
const spoken = "7.0.0"

func (c *conn) ping(r *reply, args [][]byte) {
	if err := c.server.issuer.Ready(); err != nil { // as Redis does while it loads, for load balancers
		r.refuse(err)
	} else if len(args) > 1 {
		c.echo(r, args)
	} else {
		r.line('+', "PONG")
	}
}

func (c *conn) echo(r *reply, args [][]byte) { r.bulk(string(args[1])) }

func (c *conn) leave(r *reply, _ [][]byte) {
	c.quit = true
	r.ok()
}

// authenticate takes a token with the name of its client, if a name is given.
func (c *conn) authenticate(r *reply, name, token string) bool {
	if c.server.issuer.Anyone() != nil {
		r.fail("ERR", "AUTH was sent, but this server has no tokens: remove the password from the client's configuration")
		return false
	}
	client, err := c.server.issuer.Authenticate(token, false)
	if err == nil && name != "" && name != "default" && name != client.Name {
		err = issuer.Refuse(wire.WrongToken, "the token is not that of the name")
	}
	if err == nil {
		c.count()
		err = c.become(client)
	}
	if err != nil {
		_ = c.done(r, []byte("AUTH"), 0, err) // which ends no connection
	}
	return err == nil
}

func (c *conn) auth(r *reply, args [][]byte) {
	name := ""
	if len(args) == 3 {
		name = string(args[1])
	}
	if c.authenticate(r, name, string(args[len(args)-1])) {
		r.ok()
	}
}

// hello is HELLO [version [AUTH name token] [SETNAME name]].
func (c *conn) hello(r *reply, args [][]byte) {
	version := int64(2)
	if c.three {
		version = 3
	}
	if len(args) > 1 {
		var err error
		if version, err = strconv.ParseInt(string(args[1]), 10, 64); err != nil || version != 2 && version != 3 {
			r.fail("NOPROTO", "unsupported protocol version: this server speaks 2 and 3")
			return
		}
	}
	var token [][]byte // AUTH with its arguments
	for i := 2; i < len(args); {
		switch rest := len(args) - i; {
		case equal(args[i], "AUTH") && rest >= 3:
			token = args[i : i+3]
			i += 3
		case equal(args[i], "SETNAME") && rest >= 2: // nothing here depends on it
			i += 2
		default:
			r.fail("ERR", "syntax error in HELLO: want HELLO [version [AUTH name token] [SETNAME name]]")
			return
		}
	}
	if token != nil && !c.authenticate(r, string(token[1]), string(token[2])) {
		return
	}
	if c.client == nil {
		_ = c.done(r, args[0], 0, issuer.NoToken[issuer.RESP])
		return
	}
	c.three = version == 3
	c.pairs(r, 7)
	r.all("server", "tickflake", "version", spoken, "proto", version, "id", c.id, "mode", "standalone", "role", "master", "modules")
	r.array(0)
}

// clientCommand is what client libraries say of themselves. Nothing here depends on it.
func (c *conn) clientCommand(r *reply, args [][]byte) {
	switch sub := args[1]; {
	case equal(sub, "ID"):
		r.integer(c.id)
	case equal(sub, "SETNAME"), equal(sub, "SETINFO"):
		r.ok()
	case equal(sub, "TRACKING") && slices.ContainsFunc(args[2:], func(arg []byte) bool { return equal(arg, "OPTIN") }):
		// A client that keeps answers asks to be told when they change, and some give up if this is refused. With OPTIN it
		// keeps only answers that it has announced by CLIENT CACHING, which is refused. So there is nothing to tell.
		r.ok()
	default:
		r.fail("ERR", "unknown subcommand of CLIENT "+printable(sub)+": want ID, SETNAME, SETINFO, or TRACKING with OPTIN, since no answer may be kept")
	}
}

// info describes the server in the form that clients of Redis read: some wait while it says loading.
func (c *conn) info(r *reply, _ [][]byte) {
	i := c.server.issuer
	config := i.Config()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\r\n", args...) }
	line("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver:tickflake", spoken)
	loading, ready := "0", "1"
	if err := i.Ready(); err != nil {
		loading, ready = "1\r\nloading_eta_seconds:1", "0\r\nnot_ready_because:"+err.Error()
	}
	line("\r\n# Persistence\r\nloading:%s\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0", loading)
	line("\r\n# Tickflake\r\nready:%s\r\nclock_error:%s\r\nstore:%s\r\ncopies_noticed_by:%s", ready, i.ClockError(), config.StoreName, i.Noticed())
	line("layout:%s\r\nnode:%d\r\nstrategy:%s", i.Layout(), config.Generator.Node(), config.Strategy)
	line("max_batch:%d\r\nmax_numbers:%d", config.MaxBatch, config.MaxNumbers)
	line("note:in segmented mode numbers of several servers interleave; in ordered mode they are in the order of real time")
	r.bulk(b.String())
}

func equal(arg []byte, name string) bool { return bytes.EqualFold(arg, []byte(name)) }
