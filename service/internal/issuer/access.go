package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
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
	Name      string // empty: nobody in particular, where the configuration has no clients
	ids       bool
	sequences []string
	limiter   *rate.Limiter // nil: no limit
}

type access struct {
	tokens  [][sha256.Size]byte
	clients []*Client
	anyone  *Client // nil if there are clients
}

var (
	errNoToken  = errors.New("a token is needed")
	errNoBearer = errors.New("a token is needed: send 'Authorization: Bearer TOKEN' once")
	errBadToken = errors.New("the token is not known")
)

func newAccess(credentials []Credential) *access {
	a := &access{}
	for _, c := range credentials {
		client := &Client{Name: c.Name, ids: !c.NoIDs, sequences: c.Sequences}
		if c.Rate > 0 {
			client.limiter = rate.NewLimiter(rate.Limit(c.Rate), max(c.Burst, 1))
		}
		a.tokens = append(a.tokens, c.Token)
		a.clients = append(a.clients, client)
	}
	if len(a.clients) == 0 {
		a.anyone = &Client{ids: true, sequences: []string{"*"}}
	}
	return a
}

// Anyone returns the client of a connection that has given no token: nil if the
// configuration has clients.
func (i *Issuer) Anyone() *Client { return i.access.anyone }

// Bearer returns the client of a request with these values of the header authorization.
func (i *Issuer) Bearer(values []string) (*Client, error) {
	if i.access.anyone != nil {
		return i.access.anyone, nil
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
	sum := sha256.Sum256([]byte(token))
	found := -1
	for n := range i.access.tokens {
		if subtle.ConstantTimeCompare(sum[:], i.access.tokens[n][:]) == 1 {
			found = n
		}
	}
	if found < 0 {
		return nil, &Refusal{Code: Unauthenticated, Err: errBadToken}
	}
	return i.access.clients[found], nil
}

// admit refuses a request for n IDs that the client may not make now.
func (i *Issuer) admit(c *Client, n int64) error {
	if c == nil {
		return &Refusal{Code: Unauthenticated, Err: errNoToken}
	}
	if !c.ids {
		return &Refusal{Code: Forbidden, Err: fmt.Errorf("client %s may not take IDs", c.Name)}
	}
	return c.spend(n)
}

// Largest returns how many IDs and how many numbers a request of the client may ask for: the
// limits of the server, or the client's burst where that is smaller.
func (i *Issuer) Largest(c *Client) (ids, numbers int64) {
	ids, numbers = i.config.MaxBatch, i.config.MaxNumbers
	if c != nil && c.limiter != nil {
		burst := int64(c.limiter.Burst())
		ids, numbers = min(ids, burst), min(numbers, burst)
	}
	return ids, numbers
}

// maxWait is the longest wait that a client is told, for rates that are very low.
const maxWait = 24 * time.Hour

// spend takes n off the client's rate.
func (c *Client) spend(n int64) error {
	if c.limiter == nil {
		return nil
	}
	if burst := int64(c.limiter.Burst()); n > burst {
		return &Refusal{Code: BadInput, Err: fmt.Errorf("client %s asked for %d at once: its limit is %d", c.Name, n, burst)}
	}
	now := time.Now()
	if !c.limiter.AllowN(now, int(n)) {
		limit := float64(c.limiter.Limit())
		// A caller that took tokens since may leave too few, or time may have brought enough.
		wait := max(time.Millisecond, time.Duration(min((float64(n)-c.limiter.TokensAt(now))/limit, maxWait.Seconds())*float64(time.Second)))
		return &Refusal{Code: Busy, RetryAfter: wait, Err: fmt.Errorf("client %s is above its rate of %g per second: wait %s", c.Name, limit, wait.Round(time.Millisecond))}
	}
	return nil
}

// may reports whether the client may use the sequence.
func (c *Client) may(name string) bool {
	for _, pattern := range c.sequences {
		prefix, open := strings.CutSuffix(pattern, "*")
		if name == pattern || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
