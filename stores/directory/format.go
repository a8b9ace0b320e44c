package directory

import (
	"bytes"
	"fmt"
	"hash/crc64"

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
	header, value, ok := bytes.Cut(data, []byte("\n"))
	var is, length int
	var sum uint64
	fields, _ := fmt.Sscanf(string(header), magic+"%d crc64=%x key=%s version=%d length=%d", &is, &sum, &c.Key, &c.Version, &length)
	problem = "its checksum does not match: it was changed or damaged"
	switch {
	case len(data) == 0:
		problem = "it is empty"
	case !bytes.HasPrefix(header, []byte(magic)):
		problem = "it is not a cell of tickflake"
	case fields > 0 && is != format:
		problem = fmt.Sprintf("its format is %d, and this program knows format %d only", is, format)
	case !ok:
		problem = "its first line is cut off"
	case fields > 2 && stores.CheckKey(c.Key) == nil && c.Key != key:
		problem = "it is the cell " + c.Key
	case fields == 5 && 0 <= length && length <= stores.MaxValue && len(value) <= length:
		problem = fmt.Sprintf("it is cut off: %d bytes of %d", len(data), len(header)+1+length+1)
	case fields == 5 && 0 <= length && length <= stores.MaxValue && c.Key == key && 0 < c.Version && c.Version < 1<<63:
		c.Value = bytes.Clone(value[:length])
		if bytes.Equal(encode(c), data) { // else another program has written it, or it was changed
			return c, ""
		}
	}
	return stores.Cell{}, problem
}
