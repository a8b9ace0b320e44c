module github.com/tickflake/tickflake/cmd/tickflake

go 1.26.0

require github.com/tickflake/tickflake v0.0.0

replace github.com/tickflake/tickflake => ../../
