module github.com/tickflake/tickflake

go 1.26.0

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
