package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// spoken is the version of Redis whose protocol this is. Clients decide by it what to send.
const spoken = "7.0.0"

func (c *conn) ping(r *reply, args [][]byte) error {
	if err := c.server.issuer.Ready(); err != nil { // as Redis does while it loads, for load balancers
		r.refuse(err)
		return nil
	}
	if len(args) > 1 {
		return c.echo(r, args)
	}
	r.line('+', "PONG")
	return nil
}

func (c *conn) echo(r *reply, args [][]byte) error {
	r.bulk(string(args[1]))
	return nil
}

func (c *conn) selectDB(r *reply, args [][]byte) error {
	if string(args[1]) != "0" {
		r.fail("ERR", "DB index is out of range: this server has database 0")
		return nil
	}
	r.ok()
	return nil
}

func (c *conn) leave(r *reply, _ [][]byte) error {
	c.quit = true
	r.ok()
	return nil
}

func (c *conn) reset(r *reply, _ [][]byte) error {
	c.count()
	c.three, r.three = false, false
	c.name = ""
	_ = c.become(c.server.issuer.Anyone()) // which has no limit
	r.line('+', "RESET")
	return nil
}

// authenticate takes a token with the name of its client, if a name is given.
func (c *conn) authenticate(r *reply, name, token string) bool {
	if c.server.issuer.Anyone() != nil {
		r.fail("ERR", "AUTH was sent, but this server has no tokens: remove the password from the client's configuration")
		return false
	}
	began := c.began()
	client, err := c.server.issuer.Authenticate(token, false)
	if err == nil && name != "" && name != "default" && name != client.Name {
		err = issuer.Refuse(wire.WrongToken, "the token is not that of the name")
	}
	if err == nil {
		c.count()
		err = c.become(client)
	}
	if err == nil {
		return true
	}
	_ = c.done(r, []byte("AUTH"), began, 0, err) // which ends no connection
	return false
}

func (c *conn) auth(r *reply, args [][]byte) error {
	name := ""
	if len(args) == 3 {
		name = string(args[1])
	}
	if c.authenticate(r, name, string(args[len(args)-1])) {
		r.ok()
	}
	return nil
}

// hello is HELLO [version [AUTH name token] [SETNAME name]].
func (c *conn) hello(r *reply, args [][]byte) error {
	three, name := c.three, c.name
	var token [][]byte // AUTH with its arguments
	if len(args) > 1 {
		switch version, err := strconv.Atoi(string(args[1])); {
		case err != nil:
			r.fail("ERR", "Protocol version is not an integer or out of range")
			return nil
		case version != 2 && version != 3:
			r.fail("NOPROTO", "unsupported protocol version: this server speaks 2 and 3")
			return nil
		default:
			three = version == 3
		}
	}
	for i := 2; i < len(args); {
		switch rest := len(args) - i; {
		case equal(args[i], "AUTH") && rest >= 3:
			token = args[i : i+3]
			i += 3
		case equal(args[i], "SETNAME") && rest >= 2 && goodName(args[i+1]):
			name = string(args[i+1])
			i += 2
		default:
			r.fail("ERR", "syntax error in HELLO: want HELLO [version [AUTH name token] [SETNAME name]]")
			return nil
		}
	}
	if token != nil && !c.authenticate(r, string(token[1]), string(token[2])) {
		return nil
	}
	if c.client == nil {
		return c.done(r, args[0], c.began(), 0, issuer.NoToken[issuer.RESP])
	}
	c.three, c.name, r.three = three, name, three
	version := int64(2)
	if three {
		version = 3
	}
	r.pairs(7)
	r.all("server", "tickflake", "version", spoken, "proto", version, "id", c.id, "mode", "standalone", "role", "master", "modules")
	r.array(0)
	return nil
}

// goodName reports whether a connection may have the name.
func goodName(name []byte) bool {
	return len(name) <= 64 && !bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (c *conn) clientCommand(r *reply, args [][]byte) error {
	sub, n := args[1], len(args)
	switch {
	case equal(sub, "ID") && n == 2:
		r.integer(c.id)
	case equal(sub, "GETNAME") && n == 2:
		if c.name == "" {
			r.null()
		} else {
			r.bulk(c.name)
		}
	case equal(sub, "SETNAME") && n == 3:
		if !goodName(args[2]) {
			r.fail("ERR", "Client names cannot contain spaces, newlines or special characters, and have at most 64 characters")
			return nil
		}
		c.name = string(args[2])
		r.ok()
	case equal(sub, "SETINFO") && n == 4:
		r.ok() // the name and version of a library: nothing here depends on them
	case equal(sub, "TRACKING") && n == 3 && equal(args[2], "OFF"):
		r.ok()
	case equal(sub, "TRACKING") && n >= 3 && equal(args[2], "ON"):
		// A client that keeps answers asks to be told when they change, and some give up if
		// this is refused. With OPTIN it keeps only answers that it has announced by CLIENT
		// CACHING, which is refused. So nothing is kept, and there is nothing to tell.
		if !slices.ContainsFunc(args[3:], func(arg []byte) bool { return equal(arg, "OPTIN") }) {
			r.fail("ERR", "CLIENT TRACKING ON works with OPTIN only: this server does not tell when an answer changes, so keep none")
			return nil
		}
		r.ok()
	case equal(sub, "CACHING"):
		r.fail("ERR", "this server does not tell when an answer changes, so keep none")
	default:
		r.fail("ERR", "unknown or incomplete subcommand of CLIENT "+printable(sub)+": want ID, GETNAME, SETNAME, SETINFO or TRACKING")
	}
	return nil
}

// settings are those that tools of Redis ask for.
var settings = map[string]string{"save": "", "appendonly": "no", "databases": "1", "cluster-enabled": "no"}

func (c *conn) config(r *reply, args [][]byte) error {
	if !equal(args[1], "GET") {
		r.fail("ERR", "this server has CONFIG GET only: its settings are those of 'tickflake serve'")
		return nil
	}
	var found []any
	for _, name := range args[2:] {
		if value, ok := settings[strings.ToLower(string(name))]; ok {
			found = append(found, strings.ToLower(string(name)), value)
		}
	}
	r.pairs(len(found) / 2)
	r.all(found...)
	return nil
}

// commandCommand answers to clients that ask which commands there are: the server describes none.
func (c *conn) commandCommand(r *reply, args [][]byte) error {
	if len(args) > 1 && equal(args[1], "DOCS") {
		r.pairs(0)
	} else {
		r.array(0)
	}
	return nil
}

// info describes the server in the form that clients of Redis read.
func (c *conn) info(r *reply, _ [][]byte) error {
	s := c.server
	config, layout := s.issuer.Config(), s.issuer.Layout()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\r\n", args...) }
	up := s.issuer.Uptime()
	line("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver:tickflake", spoken)
	line("uptime_in_seconds:%d\r\nuptime_in_days:%d", int64(up.Seconds()), int64(up.Hours()/24))
	line("\r\n# Clients\r\nconnected_clients:%d", s.open.Load())
	loading, ready := "0", "1"
	if err := s.issuer.Ready(); err != nil {
		loading, ready = "1\r\nloading_eta_seconds:1", "0\r\nnot_ready_because:"+err.Error()
	}
	line("\r\n# Persistence\r\nloading:%s", loading)
	line("\r\n# Replication\r\nrole:master\r\nconnected_slaves:0")
	line("\r\n# Tickflake\r\nready:%s", ready)
	line("clock_error:%s\r\nstore:%s\r\ncopies_noticed_by:%s", s.issuer.ClockError(), config.StoreName, s.issuer.Noticed())
	line("layout:%s\r\nnode:%d\r\nstrategy:%s", layout, config.Generator.Node(), config.Strategy)
	line("max_batch:%d\r\nmax_numbers:%d", config.MaxBatch, config.MaxNumbers)
	c.infoSequences(line)
	r.bulk(b.String())
	return nil
}

// infoSequences lists the first sequences that are open and that the client may use: all could
// be as many as 10,000.
func (c *conn) infoSequences(line func(string, ...any)) {
	open := c.server.issuer.OpenTo(c.client)
	line("\r\n# Sequences")
	line("sequences_open:%d", len(open))
	line("note:in segmented mode numbers of several servers interleave; in ordered mode they are in the order of real time")
	for _, seq := range open[:min(len(open), limit.Listed)] {
		d := seq.Definition()
		line("sequence_%s:mode=%s,stride=%d", seq.Name(), d.Mode, d.Stride.By())
	}
}
