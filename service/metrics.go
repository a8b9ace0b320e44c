package service

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// meters returns the providers of metrics, and what answers /metrics, on a registry of its own; nil without HTTP.
func (c *Config) meters() (providers []metric.MeterProvider, handler http.Handler, err error) {
	if c.MeterProvider != nil {
		providers = append(providers, c.MeterProvider)
	}
	if c.HTTP == nil {
		return providers, nil, nil
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	// The name is that of OTEL_SERVICE_NAME, if it is set.
	about := []attribute.KeyValue{attribute.String("service.name", "tickflake")}
	if c.StoreName != "" {
		about = append(about, attribute.String("tickflake.store", c.StoreName))
	}
	target, err := resource.Merge(resource.NewSchemaless(about...), resource.Environment())
	if err != nil {
		return nil, nil, err
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	providers = append(providers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(target)))
	return providers, promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: limit.Scrapes}), nil
}

// observe reports the generator and the server to all providers.
func (s *Server) observe() error {
	var protocols []issuer.Protocol
	for _, p := range s.parts {
		protocols = append(protocols, p.protocol)
	}
	for _, provider := range s.providers {
		if err := s.issuer.Measure(provider, protocols, min(int64(s.config.MaxConnections), s.connections.most)); err != nil {
			return fmt.Errorf("service: metrics: %w", err)
		}
	}
	return nil
}
