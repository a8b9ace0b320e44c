package directory

import (
	"bytes"
	"fmt"
	"hash/crc64"

	"github.com/tickflake/tickflake/stores"
)

const (
	magic  = "tickflake-cell "
	format = 2

	// maxFile is more than the longest cell takes.
	maxFile = stores.MaxValue + stores.MaxKey + 256
)

var table = crc64.MakeTable(crc64.ECMA)

// encode returns the contents of a cell's file: one header line, the text, and
// a newline for human readers.
func encode(key string, text []byte) []byte {
	rest := fmt.Sprintf("key=%s\n%s\n", key, text)
	return fmt.Appendf(nil, "%s%d crc64=%016x %s", magic, format, crc64.Checksum([]byte(rest), table), rest)
}

// parse is the inverse of encode. It accepts only the contents that encode makes for
// this key; for any other, problem says why not.
func parse(data []byte, key string) (text []byte, problem string) {
	header, rest, _ := bytes.Cut(data, []byte("\n"))
	text = bytes.TrimSuffix(rest, []byte("\n"))
	var is int
	var sum uint64
	var of string
	fields, _ := fmt.Sscanf(string(header), magic+"%d crc64=%x key=%s", &is, &sum, &of)
	switch {
	case len(text) > 0 && bytes.Equal(encode(key, text), data):
		return text, ""
	case len(data) == 0:
		return nil, "it is empty"
	case !bytes.HasPrefix(data, []byte(magic)):
		return nil, "it is not a cell of tickflake"
	case fields > 0 && is != format:
		return nil, fmt.Sprintf("its format is %d, and this program knows format %d only", is, format)
	case fields > 2 && stores.CheckKey(of) == nil && of != key:
		return nil, "it is the cell " + of
	}
	return nil, "its checksum does not match: it was cut off, changed or damaged"
}
