package issuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// level returns the level of a code in the log: what an operator has to know is above [slog.LevelInfo].
func level(code wire.Code) slog.Level {
	switch code {
	case wire.Internal, wire.Failed:
		return slog.LevelError
	case wire.Unavailable, wire.Unread:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Refusal is the error of every request that is not served. Its text is safe to show to the
// client: it names no address, user, store or token.
type Refusal struct {
	Code       wire.Code
	RetryAfter time.Duration // for wire.Busy and wire.Unavailable, unless a repetition is in vain
	Err        error
}

// Refuse returns a refusal with a text.
func Refuse(code wire.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Err: fmt.Errorf(format, args...)}
}

// Later returns a refusal of a request that may be repeated soon.
func Later(err error) *Refusal {
	return &Refusal{Code: wire.Unavailable, RetryAfter: time.Second, Err: err}
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// RefusalOf returns err as a Refusal.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{Code: wire.Internal, Err: errInternal}
}

var (
	// ErrDraining refuses requests that come too late.
	ErrDraining = Later(errors.New("the server is about to stop: ask another one"))
	// NoToken refuses requests without a token, by their protocol, and ErrBadToken those with one that no client has.
	NoToken = [Protocols]*Refusal{
		RESP: Refuse(wire.Unauthenticated, "a token is needed: send AUTH TOKEN first"),
		GRPC: Refuse(wire.Unauthenticated, "a token is needed: send it once, as the metadata 'authorization: Bearer TOKEN'"),
		HTTP: Refuse(wire.Unauthenticated, "a token is needed: send it once, as the header 'Authorization: Bearer TOKEN'"),
	}
	ErrBadToken = Refuse(wire.WrongToken, "the token is not known")
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
		return &Refusal{Code: wire.Busy, RetryAfter: min(max(lead.Lead-lead.Limit, i.layout.Tick), maxWait), Err: err}
	}
	if errors.Is(err, lease.ErrEndOfTime) && !errors.Is(err, generator.ErrNotGranted) {
		return &Refusal{Code: wire.OutOfRange, Err: err}
	}
	if _, ok := errors.AsType[*sequence.ExhaustedError](err); ok {
		return &Refusal{Code: wire.OutOfRange, Err: err}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Refusal{Code: wire.Canceled, Err: err}
	case errors.Is(err, generator.ErrClosed), errors.Is(err, sequence.ErrClosed):
		return ErrDraining
	case errors.Is(err, generator.ErrNotGranted):
		if forGood(err) {
			return &Refusal{Code: wire.Unavailable, Err: &hidden{errEnded, err}} // a repetition here is in vain
		}
		return Later(&hidden{errNoGrant, err})
	case errors.Is(err, sequence.ErrNotFound), errors.Is(err, sequence.ErrDeleted):
		return &Refusal{Code: wire.NotFound, Err: err}
	case errors.Is(err, sequence.ErrByPeriod): // its text names a period to ask for
		return &Refusal{Code: wire.BadInput, Err: err}
	case stores.KindOf(err) == stores.Loss, errors.Is(err, stores.Permanent):
		return &Refusal{Code: wire.Failed, Err: &hidden{errStore, err}}
	case errors.Is(err, sequence.ErrStore), errors.Is(err, sequence.ErrTimeout):
		return Later(&hidden{errStore, err})
	case errors.Is(err, context.DeadlineExceeded):
		return Later(i.timeout)
	}
	return &Refusal{Code: wire.Internal, Err: &hidden{errInternal, err}}
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
