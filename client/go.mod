module github.com/tickflake/tickflake/client

go 1.26.0

replace (
	github.com/tickflake/tickflake => ../
	github.com/tickflake/tickflake/cmd => ../cmd
	github.com/tickflake/tickflake/oteltickflake => ../oteltickflake
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
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
