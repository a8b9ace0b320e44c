module github.com/tickflake/tickflake/stores/zookeeper

go 1.26.0

require github.com/tickflake/tickflake v0.0.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/tickflake/tickflake => ../../
