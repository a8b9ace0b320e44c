package main

import "github.com/tickflake/tickflake/generator"

// form is a way to write an ID.
type form struct {
	format func(generator.ID) string
	parse  func(string) (generator.ID, error)
}

var forms = map[string]form{
	"dec":    {generator.ID.String, generator.ParseID},
	"base32": {generator.ID.Base32, generator.ParseBase32},
	"base58": {generator.ID.Base58, generator.ParseBase58},
	"base62": {generator.ID.Base62, generator.ParseBase62},
}

// formNames are the keys of forms in the order of help texts, the default first.
var formNames = []string{"dec", "base32", "base58", "base62"}
