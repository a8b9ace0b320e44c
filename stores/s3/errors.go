package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

var (
	errRights      = stores.Refused.New("the server refuses a right: grant the rights that the package doc names")
	errCredentials = stores.Refused.New("the server refuses the credentials: fix or renew them")
	errRegion      = stores.Refused.New("the bucket is in another region: name it by region=")
	errOrder       = stores.Refused.New("the bucket lists its objects in no order: take a general-purpose bucket")
	errLogin       = stores.Passing.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine or the pod a role")
	errSlow        = stores.Passing.New("the server cannot answer now")

	// advice has what to do against refusals of the server, by their codes.
	advice = map[string]error{
		"InvalidAccessKeyId":           errCredentials,
		"SignatureDoesNotMatch":        errCredentials,
		"ExpiredToken":                 errCredentials,
		"InvalidToken":                 errCredentials,
		"NoSuchBucket":                 stores.Refused.New("there is no such bucket: make it, or fix the URL"),
		"AuthorizationHeaderMalformed": errRegion,
		"RequestTimeTooSkewed":         stores.Refused.New("the clock of this machine is too far from the server's, which signatures depend on: set the clock"),
	}
)

// explain gives the server's answer its kind, and the server its name if it must not be trusted.
func (b *bucket) explain(err error) error {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	kind, code := advice[answer.Code], answer.StatusCode
	switch {
	case answer.Code == "NotImplemented":
		return fmt.Errorf("%s: %w: %w", b.server(), engine.ErrIgnores, err)
	case errors.Is(err, engine.ErrIgnores), errors.Is(err, engine.ErrRaces):
		return fmt.Errorf("%s: %w", b.server(), err)
	case kind != nil:
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		kind = fmt.Errorf("%w: %s", errSlow, answer.Code)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		kind = errRights
	case code == http.StatusMovedPermanently:
		kind = errRegion
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}
