package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

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
	r.three = c.three
	r.pairs(7)
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
