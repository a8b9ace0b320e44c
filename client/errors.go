package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// The sentinels that errors of this package wrap. The texts have the servers and the numbers.
// An error that a server answered wraps its gRPC status, too: see [status.FromError].
var (
	// ErrClosed: the Client was closed, for good.
	ErrClosed = errors.New("client is closed: open another one")
	// ErrUnavailable: no server served the request. The error names the last failure of each
	// server. Repeat the call later.
	ErrUnavailable = errors.New("no server serves the request")
	// ErrBusy: a server rejected the request, by its strategy or by the rate limit of the
	// token. A call returns it with ErrUnavailable, if the delay that the servers named
	// did not help within the timeout. Ask for fewer IDs or numbers per second.
	ErrBusy = errors.New("the server rejects requests at this rate")
	// ErrOutOfRange: the sequence, or the time of the layout, has come to its end. Do not
	// repeat the call.
	ErrOutOfRange = errors.New("no number or ID is left")
	// ErrNotFound: the servers have no sequence of this name.
	ErrNotFound = errors.New("no such sequence")
	// ErrDenied: the servers do not know the token, or do not allow the request to it.
	ErrDenied = errors.New("the server denies the request: check WithToken")
	// ErrRefused: the servers refuse the request, as by a count above their limit, or until
	// an operator has repaired the store.
	ErrRefused = errors.New("the server refuses the request")
	// ErrLayout: servers have different layouts. The error names two of them with theirs.
	ErrLayout = errors.New("servers have different layouts: give a client servers of one fleet")
	// ErrOption: an argument or option of [Open] is refused.
	ErrOption = errors.New("option refused")
)

// failure is an error of one server.
type failure struct {
	server string
	kind   error         // one of the sentinels, or nil
	cause  error         // the server's status, or the mistake in its answer
	after  time.Duration // the delay that the server named, or 0
	code   wire.Code     // of the status
	final  bool          // other servers would answer the same
}

func (f *failure) Error() string {
	text := f.cause.Error()
	if s, ok := status.FromError(f.cause); ok {
		text = s.Message()
		if f.kind == nil {
			text = fmt.Sprintf("%s (%s)", text, s.Code())
		}
	}
	if f.kind != nil {
		text = f.kind.Error() + ": " + text
	}
	return "server " + f.server + ": " + text
}

func (f *failure) Unwrap() []error {
	if f.kind == nil {
		return []error{f.cause}
	}
	return []error{f.kind, f.cause}
}

// longestDelay bounds the delay that a server may name.
const longestDelay = time.Minute

// failureOf explains an error of a request to a server. The delay that comes with UNAVAILABLE
// is not taken: a server that is about to stop names one, and may be back before, when the
// next server of a rolling restart stops.
func failureOf(server string, err error) *failure {
	s := status.Convert(err)
	code := wire.OfGRPC(uint32(s.Code()))
	f := &failure{server: server, cause: err, code: code, kind: kindOf[code], final: code.Words().Final}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && code == wire.Busy && info.GetRetryDelay().IsValid() {
			f.after = min(max(info.GetRetryDelay().AsDuration(), 0), longestDelay)
		}
	}
	return f
}

// kindOf has the sentinels of the first code of each status.
var kindOf = map[wire.Code]error{
	wire.Busy: ErrBusy, wire.OutOfRange: ErrOutOfRange, wire.NotFound: ErrNotFound,
	wire.Unauthenticated: ErrDenied, wire.BadHost: ErrDenied, wire.BadInput: ErrRefused, wire.Failed: ErrRefused,
}

// endOf returns the error of a call that waited until its context ended.
func endOf(ctx context.Context, what string, reason error) error {
	err := context.Cause(ctx)
	if ended := ctx.Err(); !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if reason != nil { // why the call had to wait
		err = fmt.Errorf("%w; %w", err, reason)
	}
	return fmt.Errorf("%s: %w", what, err)
}
