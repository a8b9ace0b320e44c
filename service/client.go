package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"

	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// Client is a program that may use the service. Printing it, logging it and encoding it as
// JSON show its name only.
type Client struct {
	Name      string   // for logs and metrics: 1 to 64 visible characters of ASCII
	Token     string   // the secret by which the client is known: 16 to 256 visible characters of ASCII
	TokenHash string   // instead of Token: its SHA-256 in hexadecimal
	Rate      float64  // IDs and numbers per second, to 1e12; the state of a sequence counts as one; 0: no limit
	Burst     int      // IDs and numbers at once, to 1e9, if there is a Rate; by default a second's, and at least MaxBatch
	NoIDs     bool     // the client may take no IDs
	Sequences []string // that the client may use: names, or prefixes that end with *; none by default
	Metrics   bool     // the client may read /metrics, which names clients and sequences

	// MaxSequences is how many sequences the client may have open at once: beyond it, the one that it has not used for
	// longest is closed. By default the server's: where that is reached, the client with the most closes one.
	MaxSequences int
}

// Format writes the name, whatever the verb.
func (c Client) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "client "+c.Name) }

// LogValue returns the name.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.Name) }

// MarshalJSON returns the name.
func (c Client) MarshalJSON() ([]byte, error) { return json.Marshal(c.Name) }

// Bounds of a [Client].
const (
	maxName  = 64
	minToken = 16 // fewer could be guessed
	maxToken = 256
	maxRate  = 1e12
	maxBurst = 1e9
)

// check returns the hash of the client's token, and its rights.
func (c Client) check(maxBatch int64) (sum [sha256.Size]byte, may issuer.Rights, err error) {
	may = issuer.Rights{IDs: !c.NoIDs, Metrics: c.Metrics, Sequences: c.Sequences, MaxSequences: c.MaxSequences, Rate: c.Rate, Burst: c.Burst}
	sum, err = c.sum()
	switch {
	case len(c.Name) < 1 || len(c.Name) > maxName || strings.ContainsFunc(c.Name, invisible):
		err = fmt.Errorf("its name is %.80q: want 1 to %d visible characters of ASCII", c.Name, maxName)
	case c.Name == oteltickflake.Others:
		err = fmt.Errorf("its name is %s, by which the metrics add up clients: give another", c.Name)
	case err != nil:
	case !(c.Rate >= 0 && c.Rate <= maxRate): // also if it is no number
		err = fmt.Errorf("its rate is %g: want 0, which is no limit, to %g per second", c.Rate, float64(maxRate))
	case c.Burst < 0 || c.Burst > maxBurst:
		err = fmt.Errorf("its burst is %d: want 1 to %d, or 0 for the default", c.Burst, int(maxBurst))
	case c.Burst > 0 && c.Rate == 0:
		err = fmt.Errorf("its burst of %d has no effect without a rate", c.Burst)
	case c.MaxSequences < 0:
		err = fmt.Errorf("its largest number of sequences is %d: want 1 or more, or 0 for the server's", c.MaxSequences)
	case c.NoIDs && len(c.Sequences) == 0 && !c.Metrics:
		err = errors.New("it may take no IDs, has no sequences and may not read the metrics: it may do nothing")
	}
	if c.Burst == 0 && c.Rate > 0 {
		may.Burst = int(max(math.Ceil(min(c.Rate, maxBurst)), float64(maxBatch)))
	}
	for _, pattern := range c.Sequences {
		if name, open := strings.CutSuffix(pattern, "*"); err == nil && (!open || name != "") {
			if wrong := sequence.CheckName(name); wrong != nil {
				err = fmt.Errorf("its sequences: %w", wrong)
			}
		}
	}
	return sum, may, err
}

// sum returns the SHA-256 of the client's token.
func (c Client) sum() (sum [sha256.Size]byte, err error) {
	if (c.Token == "") == (c.TokenHash == "") {
		return sum, errors.New("want either a token or its hash")
	}
	if c.Token != "" {
		if at := strings.IndexFunc(c.Token, invisible); at >= 0 {
			return sum, fmt.Errorf("its token holds %q at byte %d: want %d to %d visible characters of ASCII", []rune(c.Token[at:])[0], at+1, minToken, maxToken)
		}
		if len(c.Token) < minToken || len(c.Token) > maxToken {
			return sum, fmt.Errorf("its token has %d bytes: want %d to %d visible characters of ASCII", len(c.Token), minToken, maxToken)
		}
		return sha256.Sum256([]byte(c.Token)), nil
	}
	n, err := hex.Decode(sum[:], []byte(c.TokenHash[:min(len(c.TokenHash), 2*len(sum))]))
	if err != nil || n != len(sum) || len(c.TokenHash) != 2*len(sum) {
		return sum, fmt.Errorf("its token-hash has %d characters: want a SHA-256, which is %d hexadecimal digits", len(c.TokenHash), 2*len(sum))
	}
	if sum == sha256.Sum256(nil) {
		return sum, errors.New("its token-hash is that of an empty token")
	}
	return sum, nil
}

// invisible reports whether a character cannot be seen, or sent in a header.
func invisible(r rune) bool { return r <= ' ' || r > '~' }

// ReloadClients replaces [Config.Clients] by those that read returns. A client that keeps its name and
// its token keeps its connections, and has its new rights from its next request on. One that is no longer
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
		about := []any{"error", err}
		if field, ok := errors.AsType[*FieldError](err); ok && field.Index < len(clients) {
			about = append(about, "client", clients[field.Index])
		}
		c.Logger.Error("new clients cannot be used: those that were read before stay", about...)
		return err
	}
	s.issuer.SetClients(known)
	for _, p := range s.parts {
		p.listener.forget()
	}
	c.Logger.Info("the clients were read again", "clients", len(clients))
	return nil
}
