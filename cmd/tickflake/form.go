package main

import (
	"github.com/tickflake/tickflake/snowflake"
)

// form is a way to write an ID.
type form struct {
	format func(snowflake.ID) string
	parse  func(string) (snowflake.ID, error)
}

var forms = map[string]form{
	"dec":    {snowflake.ID.String, snowflake.Parse},
	"base32": {snowflake.ID.Base32, snowflake.ParseBase32},
	"base58": {snowflake.ID.Base58, snowflake.ParseBase58},
	"base62": {snowflake.ID.Base62, snowflake.ParseBase62},
}

// formNames are the keys of forms in the order of help texts, the default first.
var formNames = []string{"dec", "base32", "base58", "base62"}
