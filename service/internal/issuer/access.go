package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Credential holds the rights of a client, and the token by which it is known.
type Credential struct {
	Name      string
	Token     [sha256.Size]byte // SHA-256 of the token
	Rate      float64           // IDs and numbers per second; 0: no limit
	Burst     int               // IDs and numbers at once
	NoIDs     bool              // the client may only use sequences
	Sequences []string          // names, or prefixes that end with *; empty: none
}

// Client is who asks. Connections share it, and so share its rate.
type Client struct {
	Name   string // empty: nobody in particular, where the configuration has no clients
	token  [sha256.Size]byte
	rights atomic.Pointer[rights] // replaced as a whole; nil, for good, once the token is no longer known
	items  *atomic.Int64          // that it got; nil for nobody in particular
}

// rights are what a client may do. They do not change.
type rights struct {
	ids       bool
	sequences []string
	limiter   *rate.Limiter // nil: no limit
}

// access is a set of clients. It does not change, but for what they got.
type access struct {
	tokens  [][sha256.Size]byte
	clients []*Client
	items   map[string]*atomic.Int64 // by the names of the clients that have a series of their own
}

var (
	errNoToken  = errors.New("a token is needed")
	errNoBearer = errors.New("a token is needed: send one 'authorization: Bearer TOKEN', in gRPC as metadata")
	errBadToken = errors.New("the token is not known")
)

// SetClients replaces the clients. A client that keeps its name and its token keeps its connections,
// and has its new rights at once; if its limit stays, it keeps what it has spent. One that is no longer
// there is refused from now on. Requests that run are served.
func (i *Issuer) SetClients(credentials []Credential) {
	i.setting.Lock()
	defer i.setting.Unlock()
	old := i.access.Load()
	gone := make(map[[sha256.Size]byte]*Client)
	for _, c := range old.clients {
		gone[c.token] = c
	}
	now := &access{items: make(map[string]*atomic.Int64)}
	for _, c := range credentials {
		if items := old.items[c.Name]; items != nil {
			now.items[c.Name] = items
		}
	}
	for _, c := range credentials {
		client := gone[c.Token]
		if client != nil && client.Name == c.Name {
			delete(gone, c.Token)
		} else {
			client = &Client{Name: c.Name, token: c.Token, items: now.items[c.Name]}
			if client.items == nil && len(now.items) < i.config.MaxObserved {
				client.items = new(atomic.Int64)
				now.items[c.Name] = client.items
			} else if client.items == nil {
				client.items = &i.others
			}
		}
		may := &rights{ids: !c.NoIDs, sequences: c.Sequences}
		if limit, burst := rate.Limit(c.Rate), max(c.Burst, 1); c.Rate > 0 {
			may.limiter = rate.NewLimiter(limit, burst)
			if was := client.rights.Load(); was != nil && was.limiter != nil && was.limiter.Limit() == limit && was.limiter.Burst() == burst {
				may.limiter = was.limiter
			}
		}
		client.rights.Store(may)
		now.tokens, now.clients = append(now.tokens, c.Token), append(now.clients, client)
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

// Bearer returns the client of a request with these values of the header authorization.
func (i *Issuer) Bearer(values []string) (*Client, error) {
	if i.anyone != nil {
		return i.anyone, nil
	}
	if len(values) != 1 {
		return nil, &Refusal{Code: Unauthenticated, Err: errNoBearer}
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil, &Refusal{Code: Unauthenticated, Err: errNoBearer}
	}
	return i.Authenticate(strings.TrimSpace(token))
}

// Authenticate returns the client of a token. The time that it takes does not depend on the
// token, nor on which client it belongs to.
func (i *Issuer) Authenticate(token string) (*Client, error) {
	sum, access := sha256.Sum256([]byte(token)), i.access.Load()
	found := -1
	for n := range access.tokens {
		if subtle.ConstantTimeCompare(sum[:], access.tokens[n][:]) == 1 {
			found = n
		}
	}
	if found < 0 {
		return nil, &Refusal{Code: Unauthenticated, Err: errBadToken}
	}
	return access.clients[found], nil
}

// rightsOf returns what a client may do.
func rightsOf(c *Client) (*rights, error) {
	if c == nil {
		return nil, &Refusal{Code: Unauthenticated, Err: errNoToken}
	}
	if r := c.rights.Load(); r != nil {
		return r, nil
	}
	return nil, &Refusal{Code: Unauthenticated, Err: errBadToken}
}

// admit refuses a request for n IDs that the client may not make now.
func (i *Issuer) admit(c *Client, n int64) error {
	may, err := rightsOf(c)
	if err != nil {
		return err
	}
	if !may.ids {
		return &Refusal{Code: Forbidden, Err: fmt.Errorf("client %s may not take IDs", c.Name)}
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
func (r *rights) spend(c *Client, n int64) error {
	if r.limiter == nil {
		return nil
	}
	if burst := int64(r.limiter.Burst()); n > burst {
		return &Refusal{Code: BadInput, Err: fmt.Errorf("client %s asked for %d at once: its limit is %d", c.Name, n, burst)}
	}
	now := time.Now()
	if !r.limiter.AllowN(now, int(n)) {
		limit := float64(r.limiter.Limit())
		// A caller that took tokens since may leave too few, or time may have brought enough.
		wait := max(time.Millisecond, time.Duration(min((float64(n)-r.limiter.TokensAt(now))/limit, maxWait.Seconds())*float64(time.Second)))
		return &Refusal{Code: Busy, RetryAfter: wait, Err: fmt.Errorf("client %s is above its rate of %g per second: wait %s", c.Name, limit, wait.Round(time.Millisecond))}
	}
	return nil
}

// sequence reports whether the sequence may be used.
func (r *rights) sequence(name string) bool {
	for _, pattern := range r.sequences {
		prefix, open := strings.CutSuffix(pattern, "*")
		if name == pattern || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
