package issuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// Code is the condition for which a request is not served: the client decides by it what to do next.
type Code uint8

const (
	Internal        Code = iota // a bug, or an error that is not known here
	BadInput                    // change the request
	BadMethod                   // the path of the request has other methods
	BadHost                     // the request calls the server by a name that is not its own
	Unauthenticated             // give a token
	WrongToken                  // give another token
	Forbidden                   // the client may not do this
	NotFound                    // there is no such sequence
	Busy                        // repeat after RetryAfter: the strategy or a rate limit rejected the request
	Unavailable                 // repeat after RetryAfter, or ask another server; only that if it is 0
	OutOfRange                  // the sequence or the time field has ended: do not repeat
	Failed                      // the store needs an operator: do not repeat
	Unread                      // the client does not read its replies
	Canceled                    // the client has gone away
)

// Codes is the number of codes.
const Codes = int(Canceled) + 1

// conditions are the codes in the words of the protocols, and in the log. All protocols answer from this
// table: what is to be repeated with one is so with each. Proxies and clients of HTTP repeat a 5xx by themselves.
var conditions = [Codes]struct {
	name  string // in counts, logs and problems
	resp  string // the first word of the error, by which clients repeat
	grpc  codes.Code
	http  int
	level slog.Level // what an operator has to know is above slog.LevelInfo
}{
	Internal:        {"internal", "ERR", codes.Internal, http.StatusInternalServerError, slog.LevelError},
	BadInput:        {"bad_input", "ERR", codes.InvalidArgument, http.StatusBadRequest, slog.LevelInfo},
	BadMethod:       {"bad_method", "ERR", codes.Unimplemented, http.StatusMethodNotAllowed, slog.LevelInfo},
	BadHost:         {"bad_host", "ERR", codes.PermissionDenied, http.StatusMisdirectedRequest, slog.LevelInfo},
	Unauthenticated: {"unauthenticated", "NOAUTH", codes.Unauthenticated, http.StatusUnauthorized, slog.LevelInfo},
	WrongToken:      {"wrong_token", "WRONGPASS", codes.Unauthenticated, http.StatusUnauthorized, slog.LevelInfo},
	Forbidden:       {"forbidden", "NOPERM", codes.PermissionDenied, http.StatusForbidden, slog.LevelInfo},
	NotFound:        {"not_found", "ERR", codes.NotFound, http.StatusNotFound, slog.LevelInfo},
	Busy:            {"busy", "TRYAGAIN", codes.ResourceExhausted, http.StatusTooManyRequests, slog.LevelInfo},
	Unavailable:     {"unavailable", "LOADING", codes.Unavailable, http.StatusServiceUnavailable, slog.LevelWarn},
	OutOfRange:      {"out_of_range", "ERR", codes.OutOfRange, http.StatusConflict, slog.LevelInfo},
	Failed:          {"failed", "ERR", codes.FailedPrecondition, http.StatusConflict, slog.LevelError},
	Unread:          {"unread", "ERR", codes.Unavailable, 0, slog.LevelWarn}, // nobody reads an answer
	Canceled:        {"canceled", "ERR", codes.Canceled, 0, slog.LevelInfo},  // nobody reads an answer of HTTP
}

func (c Code) String() string { return conditions[c].name }

// RESP returns the first word of an error of the Redis protocol.
func (c Code) RESP() string { return conditions[c].resp }

// GRPC returns the code of a status.
func (c Code) GRPC() codes.Code { return conditions[c].grpc }

// HTTP returns the status of an answer.
func (c Code) HTTP() int { return conditions[c].http }

// Refusal is the error of every request that is not served. Its text is safe to show to the
// client: it names no address, user, store or token.
type Refusal struct {
	Code       Code
	RetryAfter time.Duration // for Busy and Unavailable, unless a repetition is in vain
	Err        error
}

// Refuse returns a refusal with a text.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Err: fmt.Errorf(format, args...)}
}

// Later returns a refusal of a request that may be repeated soon.
func Later(err error) *Refusal {
	return &Refusal{Code: Unavailable, RetryAfter: time.Second, Err: err}
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// RefusalOf returns err as a Refusal.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{Code: Internal, Err: errInternal}
}

var (
	// ErrDraining refuses requests that come too late.
	ErrDraining = Later(errors.New("the server is about to stop: ask another one"))
	// NoToken refuses requests without a token, by their protocol, and ErrBadToken those with one that no client has.
	NoToken = [Protocols]*Refusal{
		RESP: Refuse(Unauthenticated, "a token is needed: send AUTH TOKEN first"),
		GRPC: Refuse(Unauthenticated, "a token is needed: send it once, as the metadata 'authorization: Bearer TOKEN'"),
		HTTP: Refuse(Unauthenticated, "a token is needed: send it once, as the header 'Authorization: Bearer TOKEN'"),
	}
	ErrBadToken = Refuse(WrongToken, "the token is not known")
)

var (
	errInternal = errors.New("internal error: see the server's log")
	// The causes name addresses and users of the store, so clients do not see them.
	errStore   = errors.New("the store of the sequence failed: see the server's log")
	errNoGrant = errors.New("no time is granted, as while the server's store is away: see the server's log")
	errEnded   = errors.New("this server gets no more time for IDs, as after its fleet was moved to another store: ask another server, and see the server's log")
)

// refuse returns the Refusal for an error of the generator or of a sequence.
func (i *Issuer) refuse(err error) *Refusal {
	if lead, ok := errors.AsType[*generator.LeadError](err); ok {
		return &Refusal{Code: Busy, RetryAfter: min(max(lead.Lead-lead.Limit, i.layout.Tick), maxWait), Err: err}
	}
	if errors.Is(err, lease.ErrEndOfTime) && !errors.Is(err, generator.ErrNotGranted) {
		return &Refusal{Code: OutOfRange, Err: err}
	}
	if _, ok := errors.AsType[*sequence.ExhaustedError](err); ok {
		return &Refusal{Code: OutOfRange, Err: err}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Refusal{Code: Canceled, Err: err}
	case errors.Is(err, generator.ErrClosed), errors.Is(err, sequence.ErrClosed):
		return ErrDraining
	case errors.Is(err, generator.ErrNotGranted):
		if forGood(err) {
			return &Refusal{Code: Unavailable, Err: &hidden{errEnded, err}} // a repetition here is in vain
		}
		return Later(&hidden{errNoGrant, err})
	case errors.Is(err, sequence.ErrNotFound), errors.Is(err, sequence.ErrDeleted):
		return &Refusal{Code: NotFound, Err: err}
	case errors.Is(err, sequence.ErrByPeriod): // its text names a period to ask for
		return &Refusal{Code: BadInput, Err: err}
	case stores.KindOf(err) == stores.Loss, errors.Is(err, stores.Refused):
		return &Refusal{Code: Failed, Err: &hidden{errStore, err}}
	case errors.Is(err, sequence.ErrStore), errors.Is(err, sequence.ErrTimeout):
		return Later(&hidden{errStore, err})
	case errors.Is(err, context.DeadlineExceeded):
		return Later(i.timeout)
	}
	return &Refusal{Code: Internal, Err: &hidden{errInternal, err}}
}

// forGood reports whether the lease of an error gets no further grant in this process.
func forGood(err error) bool { return errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrMoved) }

// hidden shows the first error to clients and wraps the second, for the log.
type hidden struct{ shown, cause error }

func (h *hidden) Error() string { return h.shown.Error() }

func (h *hidden) Unwrap() error { return h.cause }

// seeLog takes out of a text what the log need not say.
var seeLog = strings.NewReplacer(": see the server's log", "", ", and see the server's log", "")

// Cause returns the text of err for the server's log.
func Cause(err error) string {
	if h, ok := errors.AsType[*hidden](err); ok {
		return seeLog.Replace(h.shown.Error()) + ": " + h.cause.Error()
	}
	return err.Error()
}
