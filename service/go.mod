module github.com/tickflake/tickflake/service

go 1.26.0

replace (
	github.com/tickflake/tickflake => ../
	github.com/tickflake/tickflake/client => ../client
	github.com/tickflake/tickflake/cmd => ../cmd
	github.com/tickflake/tickflake/oteltickflake => ../oteltickflake
	github.com/tickflake/tickflake/stores/etcd => ../stores/etcd
	github.com/tickflake/tickflake/stores/mysql => ../stores/mysql
	github.com/tickflake/tickflake/stores/nats => ../stores/nats
	github.com/tickflake/tickflake/stores/postgres => ../stores/postgres
	github.com/tickflake/tickflake/stores/redis => ../stores/redis
	github.com/tickflake/tickflake/stores/s3 => ../stores/s3
	github.com/tickflake/tickflake/stores/zookeeper => ../stores/zookeeper
)

require (
	github.com/getkin/kin-openapi v0.152.0
	github.com/prometheus/client_golang v1.24.1
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
	github.com/tickflake/tickflake/client v0.0.0
	github.com/tickflake/tickflake/oteltickflake v0.0.0
	go.opentelemetry.io/otel v1.45.0
	go.opentelemetry.io/otel/exporters/prometheus v0.67.0
	go.opentelemetry.io/otel/metric v1.45.0
	go.opentelemetry.io/otel/sdk v1.45.0
	go.opentelemetry.io/otel/sdk/metric v1.45.0
	golang.org/x/text v0.42.0
	golang.org/x/time v0.16.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v0.22.5 // indirect
	github.com/go-openapi/swag/jsonname v0.25.5 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/oasdiff/yaml v0.1.1 // indirect
	github.com/oasdiff/yaml3 v0.0.14 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/trace v1.45.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
