package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// metrics returns what answers /metrics, on a registry of its own; nil without HTTP.
func (s *Server) metrics(protocols []issuer.Protocol) (http.Handler, error) {
	if s.config.HTTP == nil {
		return nil, nil
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	// The name is that of OTEL_SERVICE_NAME, if it is set.
	about := []attribute.KeyValue{attribute.String("service.name", "tickflake")}
	if s.config.StoreName != "" {
		about = append(about, attribute.String("tickflake.store", s.config.StoreName))
	}
	target, err := resource.Merge(resource.NewSchemaless(about...), resource.Environment())
	if err != nil {
		return nil, err
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(target))
	err = s.issuer.Measure(provider, protocols, min(int64(s.config.MaxConnections), s.connections.most))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: limit.Scrapes}), err
}
