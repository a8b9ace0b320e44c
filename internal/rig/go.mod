module github.com/tickflake/tickflake/internal/rig

go 1.26.0

require (
	github.com/tickflake/tickflake v0.0.0
	golang.org/x/sys v0.49.0
)

replace (
	github.com/tickflake/tickflake => ../..
	github.com/tickflake/tickflake/api => ../../api
	github.com/tickflake/tickflake/client => ../../client
)
