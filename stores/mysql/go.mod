module github.com/tickflake/tickflake/stores/mysql

go 1.26.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/stretchr/testify v1.12.1
	github.com/tickflake/tickflake v0.0.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/tickflake/tickflake => ../..
