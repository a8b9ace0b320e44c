module github.com/tickflake/tickflake/oteltickflake

go 1.26.0

replace (
	github.com/tickflake/tickflake => ../
	github.com/tickflake/tickflake/client => ../client
	github.com/tickflake/tickflake/cmd => ../cmd
	github.com/tickflake/tickflake/service => ../service
	github.com/tickflake/tickflake/stores/etcd => ../stores/etcd
	github.com/tickflake/tickflake/stores/mysql => ../stores/mysql
	github.com/tickflake/tickflake/stores/nats => ../stores/nats
	github.com/tickflake/tickflake/stores/postgres => ../stores/postgres
	github.com/tickflake/tickflake/stores/redis => ../stores/redis
	github.com/tickflake/tickflake/stores/s3 => ../stores/s3
	github.com/tickflake/tickflake/stores/zookeeper => ../stores/zookeeper
)

require (
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
	go.opentelemetry.io/otel v1.45.0
	go.opentelemetry.io/otel/metric v1.45.0
	go.opentelemetry.io/otel/sdk v1.45.0
	go.opentelemetry.io/otel/sdk/metric v1.45.0
	go.opentelemetry.io/otel/trace v1.45.0
)

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
