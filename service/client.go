package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// Client is a program that may use the service. Printing it, logging it and encoding it as
// JSON show its name only.
type Client struct {
	Name string // for logs and metrics: 1 to 64 visible characters of ASCII

	// The secrets by which the client is known, of 16 to 256 visible characters of ASCII, or the SHA-256 of each in
	// hexadecimal: one, or two while the programs move from one to the other.
	Tokens, TokenHashes []string

	Rate      float64  // IDs and numbers per second, to 1e12; the state of a sequence counts as one; 0: no limit
	Burst     int      // IDs and numbers at once, to 1e9, if there is a Rate; by default a second's, and at least MaxBatch
	NoIDs     bool     // the client may take no IDs
	Sequences []string // that the client may use: names, or prefixes that end with *; none by default
	Metrics   bool     // the client may read /metrics, which names clients and sequences

	// MaxSequences is how many sequences the client may have open at once: beyond it, the one that it has not used for
	// longest is closed. By default the server's: where that is reached, the client with the most closes one.
	MaxSequences int
	// MaxConnections is how many connections the client may have open at once, and how many calls under way over
	// HTTP and gRPC. By default it is half of the server's, so that no client holds them all.
	MaxConnections int
}

// Format writes the name, whatever the verb.
func (c Client) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "client "+c.Name) }

// LogValue returns the name.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.Name) }

// MarshalJSON returns the name.
func (c Client) MarshalJSON() ([]byte, error) { return json.Marshal(c.Name) }

// Bounds of a [Client].
const (
	maxName   = 64
	minToken  = 16 // fewer could be guessed
	maxToken  = 256
	maxTokens = 2
	maxRate   = 1e12
	maxBurst  = 1e9
)

// check returns the hashes of the client's tokens, and its rights.
func (c Client) check(of *Config) (sums [][sha256.Size]byte, may issuer.Rights, err error) {
	may = issuer.Rights{IDs: !c.NoIDs, Metrics: c.Metrics, Sequences: c.Sequences, MaxSequences: c.MaxSequences, Rate: c.Rate, Burst: c.Burst}
	may.MaxConnections = int64(cmp.Or(c.MaxConnections, max(1, of.MaxConnections/2)))
	sums, err = c.sums()
	switch {
	case len(c.Name) < 1 || len(c.Name) > maxName || strings.ContainsFunc(c.Name, invisible):
		err = fmt.Errorf("its name is %.80q: want 1 to %d visible characters of ASCII", c.Name, maxName)
	case err != nil:
	case !(c.Rate >= 0 && c.Rate <= maxRate): // also if it is no number
		err = fmt.Errorf("its rate is %g: want 0, which is no limit, to %g per second", c.Rate, float64(maxRate))
	case c.Burst < 0 || c.Burst > maxBurst:
		err = fmt.Errorf("its burst is %d: want 1 to %d, or 0 for the default", c.Burst, int(maxBurst))
	case c.Burst > 0 && c.Rate == 0:
		err = fmt.Errorf("its burst of %d has no effect without a rate", c.Burst)
	case c.MaxSequences < 0:
		err = fmt.Errorf("its largest number of sequences is %d: want 1 or more, or 0 for the server's", c.MaxSequences)
	case c.MaxConnections < 0:
		err = fmt.Errorf("its largest number of connections is %d: want 1 or more, or 0 for half of the server's", c.MaxConnections)
	case c.NoIDs && len(c.Sequences) == 0 && !c.Metrics:
		err = errors.New("it may take no IDs, has no sequences and may not read the metrics: it may do nothing")
	}
	if c.Burst == 0 && c.Rate > 0 {
		may.Burst = int(max(math.Ceil(min(c.Rate, maxBurst)), float64(of.MaxBatch)))
	}
	for _, pattern := range c.Sequences {
		if name, open := strings.CutSuffix(pattern, "*"); err == nil && (!open || name != "") {
			if wrong := sequence.ValidateName(name); wrong != nil {
				err = fmt.Errorf("its sequences: %w", wrong)
			}
		}
	}
	return sums, may, err
}

// sums returns the SHA-256 of each of the client's tokens.
func (c Client) sums() (sums [][sha256.Size]byte, err error) {
	if n := len(c.Tokens) + len(c.TokenHashes); n < 1 || n > maxTokens {
		return nil, fmt.Errorf("it has %d tokens and hashes: want one, or two while programs move to a new one", n)
	}
	for _, token := range c.Tokens {
		if at := strings.IndexFunc(token, invisible); at >= 0 {
			return nil, fmt.Errorf("its token holds %q at byte %d: want %d to %d visible characters of ASCII", []rune(token[at:])[0], at+1, minToken, maxToken)
		}
		if len(token) < minToken || len(token) > maxToken {
			return nil, fmt.Errorf("its token has %d bytes: want %d to %d visible characters of ASCII", len(token), minToken, maxToken)
		}
		sums = append(sums, sha256.Sum256([]byte(token)))
	}
	for _, text := range c.TokenHashes {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("its token-hash has %d characters: want a SHA-256, which is %d hexadecimal digits", len(text), 2*sha256.Size)
		}
		if sums = append(sums, [sha256.Size]byte(sum)); sums[len(sums)-1] == sha256.Sum256(nil) {
			return nil, errors.New("its token-hash is that of an empty token")
		}
	}
	return sums, nil
}

// invisible reports whether a character cannot be seen, or sent in a header.
func invisible(r rune) bool { return r <= ' ' || r > '~' }

// ReloadClients replaces [Config.Clients] by those that read returns. A client that keeps its name and
// a token keeps its connections of that token, and has its new rights from its next request on. One that is no longer
// there is refused, and its connections end within ReadTimeout. No request of another is harmed.
//
// If read fails, or what it returns does not fit, the clients stay as they are, the log and the metric
// tickflake.config.last_reload_successful say so, and ReloadClients returns the error. It also fails if
// there were no clients, or if there would be none: whether a token is needed does not change.
func (s *Server) ReloadClients(read func() ([]Client, error)) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	c, known := s.config, []*issuer.Client(nil)
	clients, err := read()
	if err == nil && (len(clients) == 0 || len(c.Clients) == 0) {
		err = fmt.Errorf("service: there are %d clients, and at the start there were %d, so who needs a token would change: name at least one, or restart the server", len(clients), len(c.Clients))
	}
	if err == nil {
		c.Clients = clients
		known, err = c.clients()
	}
	if err != nil {
		s.issuer.Stale()
		c.Logger.Error("new clients cannot be used: those that were read before stay", "error", err)
		return err
	}
	s.issuer.SetClients(known)
	for _, p := range s.parts {
		p.listener.forget()
	}
	c.Logger.Info("the clients were read again", "clients", len(clients))
	return nil
}
