package web

import (
	"mime"
	"strconv"
	"strings"
)

// maxRanges is how many media ranges of Accept headers are read.
const maxRanges = 32

// plainText reports whether a client with the Accept headers would rather have text/plain
// than application/json, and whether it takes one of them.
func plainText(accept []string) (plain, ok bool) {
	if len(accept) == 0 || len(accept) == 1 && (accept[0] == "*/*" || accept[0] == "application/json") {
		return false, true
	}
	// The quality of a type is that of the range that names it most exactly.
	var json, text quality
	ranges := 0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if ranges++; ranges > maxRanges {
			break
		}
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if given, has := parameters["q"]; has {
			if q, err = strconv.ParseFloat(given, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		switch kind {
		case "application/json":
			json.raise(2, q)
		case "text/plain":
			text.raise(2, q)
		case "application/*":
			json.raise(1, q)
		case "text/*":
			text.raise(1, q)
		case "*/*":
			json.raise(0, q)
			text.raise(0, q)
		}
	}
	return text.q > json.q, text.q > 0 || json.q > 0
}

// quality is how much a client wants a type.
type quality struct {
	exact int
	q     float64
}

func (k *quality) raise(exact int, q float64) {
	if exact > k.exact || exact == k.exact && q > k.q {
		k.exact, k.q = exact, q
	}
}
