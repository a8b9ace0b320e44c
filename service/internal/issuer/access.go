package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"golang.org/x/time/rate"
)

// Client is who asks, as one of its tokens says. Connections share it, and so share its rate.
type Client struct {
	Name   string                 // empty: nobody in particular, where the configuration has no clients
	token  [sha256.Size]byte      // SHA-256 of the token
	rights atomic.Pointer[Rights] // replaced as a whole; nil, for good, once the token is no longer known
	*account
}

// account is what a client has, by whatever token it came. Reloads keep it, by the client's name.
type account struct {
	items       atomic.Int64  // IDs and numbers that it got
	connections atomic.Int64  // open; never above the client's limit but for the moment in which one is refused
	calls       atomic.Int64  // under way over HTTP and gRPC; likewise
	turn        chan struct{} // holds one while a large request is served
	kept        atomic.Int64  // bytes of replies that it has not read
}

// Rights are what a client may do. They do not change.
type Rights struct {
	IDs, Metrics   bool
	Sequences      []string // names, or prefixes that end with *; empty: none
	MaxSequences   int      // that it may have open at once; 0: as many as there is room for
	MaxConnections int64    // and calls over HTTP and gRPC, at once; 0: no limit
	Rate           float64  // IDs and numbers per second; 0: no limit
	Burst          int      // IDs and numbers at once

	limiter *rate.Limiter // nil: no limit
}

// NewClient returns a client for [Issuer.SetClients].
func NewClient(name string, token [sha256.Size]byte, may Rights) *Client {
	c := &Client{Name: name, token: token, account: &account{turn: make(chan struct{}, 1)}}
	if may.Rate > 0 {
		may.limiter = rate.NewLimiter(rate.Limit(may.Rate), max(may.Burst, 1))
	}
	c.rights.Store(&may)
	return c
}

// And returns the same client with another of its tokens.
func (c *Client) And(token [sha256.Size]byte) *Client {
	other := &Client{Name: c.Name, token: token, account: c.account}
	other.rights.Store(c.rights.Load())
	return other
}

// Kept counts the bytes of replies that the client has not read.
func (c *Client) Kept() *atomic.Int64 { return &c.kept }

// Join counts a connection of the client until Leave, unless it has too many.
func (c *Client) Join() error { return c.within(&c.connections, "connections open") }

// Leave ends what Join began.
func (c *Client) Leave() { c.connections.Add(-1) }

// within adds one, unless that is more than the client may have at once.
func (c *Client) within(n *atomic.Int64, what string) error {
	may, err := rightsOf(c)
	if err != nil {
		return err
	}
	if now := n.Add(1); may.MaxConnections > 0 && now > may.MaxConnections {
		n.Add(-1)
		return &Refusal{Code: wire.Busy, RetryAfter: time.Second, Err: fmt.Errorf("client %s has its largest number of %s, %d", c.Name, what, may.MaxConnections)}
	}
	return nil
}

// access is a set of clients. It does not change, but for what they got.
type access struct {
	clients []*Client          // one for each token
	named   map[string]*Client // one for each name
}

// SetClients replaces the clients. A client that keeps its name and a token keeps its connections of that token,
// and has its new rights at once; if its limit stays, it keeps what it has spent. A token that is no longer
// there is refused from now on. Requests that run are served.
func (i *Issuer) SetClients(clients []*Client) {
	i.setting.Lock()
	defer i.setting.Unlock()
	old, now := i.access.Load(), &access{named: make(map[string]*Client)}
	gone := make(map[[sha256.Size]byte]*Client)
	for _, c := range old.clients {
		gone[c.token] = c
	}
	for _, c := range clients {
		if was := old.named[c.Name]; was != nil {
			c.account = was.account
			if may, had := c.rights.Load(), was.rights.Load(); had.limiter != nil && had.Rate == may.Rate && had.Burst == may.Burst {
				may.limiter = had.limiter
			}
		}
	}
	for _, c := range clients { // all that is shared stands before a connection sees the new rights
		if client := gone[c.token]; client != nil && client.Name == c.Name {
			delete(gone, c.token)
			client.rights.Store(c.rights.Load())
			c = client
		}
		now.clients, now.named[c.Name] = append(now.clients, c), c
	}
	i.access.Store(now)
	i.stale.Store(false)
	for _, c := range gone {
		c.rights.Store(nil)
	}
}

// Stale says that the clients are not those that were given last, until SetClients is called.
func (i *Issuer) Stale() { i.stale.Store(true) }

// Gone reports whether the client's token is no longer known. A client that is gone stays so.
func (c *Client) Gone() bool { return c.rights.Load() == nil }

// Anyone returns the client of a connection that has given no token: nil if the
// configuration has clients.
func (i *Issuer) Anyone() *Client { return i.anyone }

// Bearer returns the client of a request with these values of the header authorization. If the client is known
// and may not do what it asks, the metrics or all else, there is an error as well.
func (i *Issuer) Bearer(p Protocol, values []string, metrics bool) (*Client, error) {
	if i.anyone != nil {
		return i.anyone, nil
	}
	if len(values) != 1 {
		return nil, NoToken[p]
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" {
		return nil, NoToken[p]
	}
	return i.Authenticate(token, metrics)
}

// Authenticate returns the client of a token, as Bearer does. The time that it takes does not depend on the
// token, nor on which client it belongs to.
func (i *Issuer) Authenticate(token string, metrics bool) (*Client, error) {
	sum := sha256.Sum256([]byte(token))
	var c *Client
	for _, one := range i.access.Load().clients {
		if subtle.ConstantTimeCompare(sum[:], one.token[:]) == 1 {
			c = one
		}
	}
	if c == nil {
		return nil, ErrBadToken
	}
	may, err := rightsOf(c)
	switch {
	case err != nil:
	case metrics && !may.Metrics:
		err = Refuse(wire.Forbidden, "client %s may not read the metrics", c.Name)
	case !metrics && may.Metrics && !may.IDs && len(may.Sequences) == 0:
		err = Refuse(wire.Forbidden, "client %s may read the metrics only, over HTTP", c.Name)
	}
	return c, err
}

// rightsOf returns what a client may do.
func rightsOf(c *Client) (*Rights, error) {
	if c == nil { // RESP only: the others have refused it
		return nil, NoToken[RESP]
	}
	if r := c.rights.Load(); r != nil {
		return r, nil
	}
	return nil, ErrBadToken
}

// admit refuses a request for n IDs that the client may not make now.
func (i *Issuer) admit(c *Client, n int64) error {
	may, err := rightsOf(c)
	if err != nil {
		return err
	}
	if !may.IDs {
		return Refuse(wire.Forbidden, "client %s may not take IDs", c.Name)
	}
	return may.spend(c, n)
}

// Largest returns how many IDs and how many numbers a request of the client may ask for: the
// limits of the server, or the client's burst where that is smaller.
func (i *Issuer) Largest(c *Client) (ids, numbers int64) {
	ids, numbers = i.config.MaxBatch, i.config.MaxNumbers
	if may, err := rightsOf(c); err == nil && may.limiter != nil {
		burst := int64(may.limiter.Burst())
		ids, numbers = min(ids, burst), min(numbers, burst)
	}
	return ids, numbers
}

// maxWait is the longest wait that a client is told, for rates that are very low and IDs that are far ahead.
const maxWait = 24 * time.Hour

// spend takes n off the rate of the client.
func (r *Rights) spend(c *Client, n int64) error {
	if r.limiter == nil {
		return nil
	}
	if burst := int64(r.limiter.Burst()); n > burst {
		return Refuse(wire.BadInput, "client %s asked for %d at once: its limit is %d", c.Name, n, burst)
	}
	now := time.Now()
	if !r.limiter.AllowN(now, int(n)) {
		// A caller that took tokens since may leave too few, or time may have brought enough.
		wait := max(time.Millisecond, time.Duration(min((float64(n)-r.limiter.TokensAt(now))/r.Rate, maxWait.Seconds())*float64(time.Second)))
		return &Refusal{Code: wire.Busy, RetryAfter: wait, Err: fmt.Errorf("client %s is above its rate of %g per second: wait %s", c.Name, r.Rate, wait.Round(time.Millisecond))}
	}
	return nil
}

// sequence reports whether the sequence may be used.
func (r *Rights) sequence(name string) bool {
	for _, pattern := range r.Sequences {
		prefix, open := strings.CutSuffix(pattern, "*")
		if name == pattern || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
