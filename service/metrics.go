package service

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// scrapesAtOnce bounds the cost of requests for /metrics.
const scrapesAtOnce = 4

// meters are the providers of metrics.
type meters struct {
	providers []metric.MeterProvider
	handler   http.Handler // of /metrics; nil without HTTP

	unregister []func() error // added to before Run serves

	sequences []*oteltickflake.Sequences // of each provider; added to before Run serves
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
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	// The name is that of OTEL_SERVICE_NAME, if it is set.
	about := []attribute.KeyValue{attribute.String("service.name", "tickflake")}
	if c.StoreName != "" {
		about = append(about, attribute.String("tickflake.store", c.StoreName))
	}
	target, err := resource.Merge(resource.NewSchemaless(about...), resource.Environment())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.providers = append(m.providers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(target)))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce})
	return m, nil
}

// observe reports the generator and the server to all providers.
func (s *Server) observe() error {
	state := issuer.State{
		MaxConnections: min(int64(s.config.MaxConnections), s.connections.most),
		Expiry:         func() (time.Time, bool) { return expiry(s.config.TLS) },
		Others:         oteltickflake.Others,
	}
	for _, p := range s.parts {
		state.Protocols = append(state.Protocols, p.protocol)
	}
	for _, provider := range s.meters.providers {
		unregister, err := s.issuer.Measure(provider, state)
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.meters.unregister = append(s.meters.unregister, unregister)
		registration, err := oteltickflake.Observe(s.config.Generator, oteltickflake.WithMeterProvider(provider))
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.meters.unregister = append(s.meters.unregister, registration.Unregister)
		sequences, err := oteltickflake.ObserveSequences(s.config.MaxObserved, oteltickflake.WithMeterProvider(provider))
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.meters.sequences = append(s.meters.sequences, sequences)
		s.meters.unregister = append(s.meters.unregister, sequences.Unregister)
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
	var removes []func()
	for _, sequences := range s.meters.sequences {
		removes = append(removes, sequences.Add(seq))
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}
