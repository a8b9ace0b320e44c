package nats

import (
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
)

// refused makes the server's refusal wrap [stores.Refused].
func refused(err error) error {
	for refusal, why := range refusals {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %w", why, err)
		}
	}
	return err
}

var (
	errCredentials = stores.Refused.New("the server refuses the user, the password or a right: fix the URL, or grant the rights that the package doc lists")
	errNoStreams   = stores.Refused.New("the server has no JetStream for this account: switch it on")

	refusals = map[error]error{
		natsgo.ErrAuthorization: errCredentials, natsgo.ErrAuthExpired: errCredentials, natsgo.ErrAuthRevoked: errCredentials,
		natsgo.ErrAccountAuthExpired: errCredentials, natsgo.ErrPermissionViolation: errCredentials,
		jetstream.ErrJetStreamNotEnabled: errNoStreams, jetstream.ErrJetStreamNotEnabledForAccount: errNoStreams,
	}
)
