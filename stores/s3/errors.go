package s3

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"

	"github.com/tickflake/tickflake/stores"
)

var (
	errBusy    = stores.Passing.New("the server was busy with another write of the object")
	errIgnores = stores.Refused.New("the server ignores the conditions If-None-Match and If-Match, so IDs would be issued twice: " +
		"take a version that heeds them, or another server")
	errRaces = stores.Refused.New("writes at once on one condition have succeeded, so IDs would be issued twice: " +
		"take a server that heeds If-Match and If-None-Match under load, or let it be strongly consistent")
	errOrder = stores.Refused.New("the bucket lists its objects in no order: take a general-purpose bucket")
	errLogin = stores.Refused.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, " +
		"or give the machine or the pod a role")
)

// advice has what to do against refusals of the server, by their codes.
var advice = map[string]error{
	"AccessDenied":                       errRights,
	"AllAccessDisabled":                  errRights,
	"InvalidAccessKeyId":                 errCredentials,
	"SignatureDoesNotMatch":              errCredentials,
	"ExpiredToken":                       errCredentials,
	"InvalidToken":                       errCredentials,
	"NoSuchBucket":                       stores.Refused.New("there is no such bucket: make it, or fix the URL"),
	"InvalidBucketName":                  stores.Refused.New("the server takes no bucket of such a name: fix the URL"),
	"AuthorizationHeaderMalformed":       errRegion,
	"PermanentRedirect":                  errRegion,
	"IllegalLocationConstraintException": errRegion,
	"RequestTimeTooSkewed":               stores.Refused.New("the clock of this machine is too far from the server's, which signatures depend on: set the clock"),
	"NotImplemented":                     errIgnores,
}

var (
	errRights      = stores.Refused.New("the server refuses a right: grant the rights that the package doc names")
	errCredentials = stores.Refused.New("the server refuses the credentials: fix or renew them")
	errRegion      = stores.Refused.New("the bucket is in another region: name it by region=")
)

// refused gives the server's answer its kind.
func refused(err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		_, lost := errors.AsType[*url.Error](err)
		if _, tells := errors.AsType[*net.OpError](err); lost && !tells {
			return fmt.Errorf("%w: %w", errLost, err) // the driver hides the cause
		}
		return err
	}
	if known := advice[answer.Code]; known != nil {
		return fmt.Errorf("%w: %w", known, err)
	}
	switch code := answer.StatusCode; {
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s: %w", errSlow, answer.Code, err)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w", errRights, err)
	case code == http.StatusMovedPermanently:
		return fmt.Errorf("%w: %w", errRegion, err)
	}
	return err
}

var (
	errLost = stores.Passing.New("the connection was lost")
	errSlow = stores.Passing.New("the server cannot answer now")
)
