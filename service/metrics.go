package service

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/observe"
)

// maxObserved is how many sequences have metrics of their own at a time: each has 15 series.
const maxObserved = 1000

// scrapesAtOnce bounds the cost of requests for /metrics.
const scrapesAtOnce = 4

// meters are the providers of metrics.
type meters struct {
	providers []metric.MeterProvider
	handler   http.Handler // of /metrics; nil without HTTP

	unregister []func() error // added to before Run serves

	observed atomic.Int64 // sequences that have metrics; at most maxObserved stay
}

// newMeters makes the provider of /metrics, on a registry of its own.
func newMeters(c *Config) (*meters, error) {
	m := &meters{}
	if c.MeterProvider != nil {
		m.providers = append(m.providers, c.MeterProvider)
	}
	if c.HTTP == nil {
		return m, nil
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.providers = append(m.providers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce})
	return m, nil
}

// observe reports the generator and the server to all providers.
func (s *Server) observe() error {
	state := observe.State{
		MaxConnections: min(int64(s.config.MaxConnections), s.connections.most), Issuer: s.issuer,
		Expiry: func() (time.Time, bool) { return expiry(s.config.TLS) },
	}
	for _, p := range s.parts {
		state.Protocols = append(state.Protocols, p.protocol)
	}
	for _, provider := range s.meters.providers {
		unregister, err := s.observer.Measure(provider, state)
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.meters.unregister = append(s.meters.unregister, unregister)
		registration, err := oteltickflake.Observe(s.config.Generator, oteltickflake.WithMeterProvider(provider))
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.meters.unregister = append(s.meters.unregister, registration.Unregister)
	}
	return nil
}

// end takes the server out of all providers.
func (m *meters) end() error {
	var errs []error
	for _, unregister := range m.unregister {
		errs = append(errs, unregister())
	}
	return errors.Join(errs...)
}

// opened reports a sequence to all providers until dropped is called.
func (s *Server) opened(seq *sequence.Sequence) (dropped func()) {
	if s.meters.observed.Add(1) > maxObserved {
		s.meters.observed.Add(-1)
		return func() {}
	}
	var registrations []metric.Registration
	for _, provider := range s.meters.providers {
		r, err := oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(provider))
		if err != nil {
			s.config.Logger.Warn("a sequence has no metrics", "sequence", seq.Name(), "error", err)
			continue
		}
		registrations = append(registrations, r)
	}
	return func() {
		for _, r := range registrations {
			_ = r.Unregister() // the SDK returns no error
		}
		s.meters.observed.Add(-1)
	}
}
