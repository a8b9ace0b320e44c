package directory

import (
	"bytes"
	"fmt"
	"hash/crc64"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

const (
	magic  = "tickflake-cell "
	format = 1

	// maxFile is more than the longest cell takes.
	maxFile = stores.MaxValue + stores.MaxKey + 256
)

var table = crc64.MakeTable(crc64.ECMA)

// encode returns the contents of a cell's file: one header line, the value, and
// a newline for human readers.
func encode(c stores.Cell) []byte {
	rest := fmt.Sprintf("key=%s version=%d length=%d\n%s\n", c.Key, c.Version, len(c.Value), c.Value)
	return fmt.Appendf(nil, "%s%d crc64=%016x %s", magic, format, crc64.Checksum([]byte(rest), table), rest)
}

// parse is the inverse of encode. It accepts only the contents that encode makes for
// this key; for any other, problem says why not.
func parse(data []byte, key string) (c stores.Cell, problem string) {
	if len(data) == 0 {
		return c, "it is empty"
	}
	header, value, ok := bytes.Cut(data, []byte("\n"))
	rest, known := strings.CutPrefix(string(header), magic)
	if !known {
		return c, "it is not a cell of tickflake"
	}
	number, rest, _ := strings.Cut(rest, " ")
	if f, err := strconv.ParseUint(number, 10, 32); err == nil && f != format {
		return c, fmt.Sprintf("its format is %d, and this program knows format %d only", f, format)
	}
	if !ok {
		return c, "its first line is cut off"
	}
	fields := make(map[string]string)
	for _, field := range strings.Fields(rest) {
		name, val, _ := strings.Cut(field, "=")
		fields[name] = val
	}
	length, err := strconv.ParseUint(fields["length"], 10, 16)
	switch {
	case err != nil || length > stores.MaxValue:
		return c, fmt.Sprintf("its length, %q, is no number from 0 to %d", fields["length"], stores.MaxValue)
	case len(value) <= int(length):
		return c, fmt.Sprintf("it is cut off: %d bytes of %d", len(data), len(header)+1+int(length)+1)
	}
	c.Key = fields["key"]
	if stores.CheckKey(c.Key) == nil && c.Key != key {
		return stores.Cell{}, fmt.Sprintf("it is the cell %s", c.Key)
	}
	c.Version, err = strconv.ParseUint(fields["version"], 10, 63)
	if err != nil || c.Version == 0 {
		return stores.Cell{}, fmt.Sprintf("its version, %q, is no number from 1 to 2⁶³-1", fields["version"])
	}
	c.Value = bytes.Clone(value[:length])
	// A file that differs in any byte from the result of encode was written by another
	// program, or changed.
	if c.Key != key || !bytes.Equal(encode(c), data) {
		return stores.Cell{}, "its checksum does not match: it was changed or damaged"
	}
	return c, ""
}
