module github.com/tickflake/tickflake/cmd/tickflake-chaos

go 1.26.0

require (
	github.com/jstemmer/go-junit-report/v2 v2.1.0
	github.com/rogpeppe/go-internal v1.14.1
	github.com/spf13/cobra v1.10.2
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
	github.com/tickflake/tickflake/chaos_test/kernel v0.0.0
	github.com/tickflake/tickflake/cmd/internal v0.0.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bwmarrin/snowflake v0.3.0 // indirect
	github.com/cavaliergopher/cpio v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/gofrs/uuid/v5 v5.5.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	github.com/prometheus/client_golang v1.24.1 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/rs/xid v1.6.0 // indirect
	github.com/segmentio/ksuid v1.0.4 // indirect
	github.com/sony/sonyflake v1.2.0 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	github.com/tickflake/tickflake/api v0.0.0 // indirect
	github.com/tickflake/tickflake/client v0.0.0 // indirect
	github.com/tickflake/tickflake/otel v0.0.0-00010101000000-000000000000 // indirect
	github.com/tickflake/tickflake/service v0.0.0 // indirect
	github.com/tickflake/tickflake/stores/redis v0.0.0-00010101000000-000000000000 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.mongodb.org/mongo-driver/v2 v2.9.3 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.45.0 // indirect
	go.opentelemetry.io/otel/exporters/prometheus v0.67.0 // indirect
	go.opentelemetry.io/otel/metric v1.45.0 // indirect
	go.opentelemetry.io/otel/sdk v1.45.0 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.45.0 // indirect
	go.opentelemetry.io/otel/trace v1.45.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/tickflake/tickflake => ../../
	github.com/tickflake/tickflake/api => ../../api
	github.com/tickflake/tickflake/chaos_test/kernel => ../../chaos_test/kernel
	github.com/tickflake/tickflake/client => ../../client
	github.com/tickflake/tickflake/cmd/internal => ../internal
	github.com/tickflake/tickflake/otel => ../../otel
	github.com/tickflake/tickflake/service => ../../service
	github.com/tickflake/tickflake/stores/redis => ../../stores/redis
)
