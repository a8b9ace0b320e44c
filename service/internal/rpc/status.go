package rpc

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

var statusCodes = [issuer.Codes]codes.Code{
	issuer.Internal:        codes.Internal,
	issuer.BadInput:        codes.InvalidArgument,
	issuer.Unauthenticated: codes.Unauthenticated,
	issuer.Forbidden:       codes.PermissionDenied,
	issuer.NotFound:        codes.NotFound,
	issuer.Busy:            codes.ResourceExhausted,
	issuer.Unavailable:     codes.Unavailable,
	issuer.OutOfRange:      codes.OutOfRange,
	issuer.Failed:          codes.FailedPrecondition,
	issuer.Canceled:        codes.Canceled,
}

// statusOf returns the status of a request that was refused. ctx is the context under which
// it was served.
func statusOf(ctx context.Context, err error) error {
	r := issuer.RefusalOf(err)
	// The timeout of the server has a cause of its own, the deadline of the client has none.
	if r.Code == issuer.Unavailable && ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return status.Error(codes.DeadlineExceeded, r.Error())
	}
	st := status.New(statusCodes[r.Code], r.Error())
	if r.RetryAfter > 0 {
		if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)}); err == nil {
			st = detailed
		}
	}
	return st.Err()
}
