package kubernetes

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tickflake/tickflake/stores"
)

var (
	errRight   = stores.Refused.New("the server refuses a right: bind the Role of the package doc to the service account or user")
	errLogin   = stores.Refused.New("the server refuses the credentials: renew them, or check the service account")
	errInvalid = stores.Refused.New("the server refuses the object, or has no such kind: it needs coordination.k8s.io/v1")
	errHome    = stores.Refused.New("there is no such namespace of Kubernetes: make it, or fix the URL")
	errSlow    = stores.Passing.New("the server cannot answer now")
)

// refused gives the server's answer its kind. Its text names the right that is missing.
func refused(err error) error {
	for _, answer := range []struct {
		is   func(error) bool
		kind error
	}{
		{apierrors.IsForbidden, errRight},
		{apierrors.IsUnauthorized, errLogin},
		{apierrors.IsNotFound, errHome}, // of a write; a Read knows it as no cell
		{apierrors.IsTooManyRequests, errSlow},
		{apierrors.IsResourceExpired, errSlow}, // a List that has taken too long
		{apierrors.IsServerTimeout, errSlow},
		{apierrors.IsTimeout, errSlow},
		{apierrors.IsServiceUnavailable, errSlow},
		{apierrors.IsInternalError, errSlow},
		{apierrors.IsInvalid, errInvalid},
		{apierrors.IsBadRequest, errInvalid},
	} {
		if err != nil && answer.is(err) {
			return fmt.Errorf("%w: %w", answer.kind, err)
		}
	}
	return err
}
