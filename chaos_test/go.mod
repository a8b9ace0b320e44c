module github.com/tickflake/tickflake/chaos_test

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/tickflake/tickflake => ../
