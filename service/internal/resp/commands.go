package resp

import (
	"strings"

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
	"incr":   {ask: (*conn).incr, least: 2, most: 2},
	"incrby": {ask: (*conn).incr, least: 3, most: 3},

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
		r.fail("ERR", "unknown command "+printable(name)+": this is tickflake serve, and no store: it has ID, IDS, INCR and INCRBY")
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
