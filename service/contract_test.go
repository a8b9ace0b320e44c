package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// The service passes its contract in this process.
func TestService(t *testing.T) {
	t.Parallel()
	servicetest.TestService(t, func(t *testing.T, s servicetest.Settings) *servicetest.Service {
		var options []generator.Option
		if s.Layout != "" {
			layout, err := snowflake.ParseLayout(s.Layout)
			require.NoError(t, err)
			options = append(options, generator.WithLayout(layout))
		}
		if s.Strategy != "" {
			strategy, err := strategies.Parse(s.Strategy)
			require.NoError(t, err)
			options = append(options, generator.WithStrategy(strategy))
		}
		r := start(t, listen, func(c *service.Config) {
			own := *c
			*c = s.Config
			c.Generator, c.Store, c.Logger, c.RESP, c.GRPC, c.HTTP = newGenerator(t, options...), own.Store, own.Logger, own.RESP, own.GRPC, own.HTTP
			if s.TLS != (servicetest.Files{}) {
				var err error
				c.TLS, err = service.ReloadTLS(s.TLS.Cert(), s.TLS.Key(), s.TLS.ClientCA(), c.Logger)
				require.NoError(t, err)
			}
		})
		return &r.Service
	})
}
