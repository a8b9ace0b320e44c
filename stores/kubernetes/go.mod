module github.com/tickflake/tickflake/stores/kubernetes

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
	go.yaml.in/yaml/v3 v3.0.5
)

replace github.com/tickflake/tickflake => ../../
