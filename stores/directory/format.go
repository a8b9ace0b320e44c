package directory

import (
	"bytes"
	"fmt"
	"hash/crc64"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/lease"
)

const (
	magic  = "tickflake-cell "
	format = 1

	// maxFile is more than the longest cell takes.
	maxFile = lease.MaxValue + 256
)

var table = crc64.MakeTable(crc64.ECMA)

// encode returns the contents of a cell's file: one line that tells all about the
// value, the value, and a newline for those who look at it.
func encode(c lease.Cell) []byte {
	rest := fmt.Sprintf("node=%d version=%d length=%d\n%s\n", c.Node, c.Version, len(c.Value), c.Value)
	return fmt.Appendf(nil, "%s%d crc64=%016x %s", magic, format, crc64.Checksum([]byte(rest), table), rest)
}

// parse is the inverse of encode. It takes nothing but what encode has made for this
// node number; problem says why.
func parse(data []byte, node int64) (c lease.Cell, problem string) {
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
		key, val, _ := strings.Cut(field, "=")
		fields[key] = val
	}
	length, err := strconv.ParseUint(fields["length"], 10, 16)
	switch {
	case err != nil || length > lease.MaxValue:
		return c, fmt.Sprintf("its length, %q, is no number from 0 to %d", fields["length"], lease.MaxValue)
	case len(value) <= int(length):
		return c, fmt.Sprintf("it is cut off: %d bytes of %d", len(data), len(header)+1+int(length)+1)
	}
	c.Version, err = strconv.ParseUint(fields["version"], 10, 64)
	if err != nil || c.Version == 0 {
		return lease.Cell{}, fmt.Sprintf("its version, %q, is no number from 1 to 2⁶⁴-1", fields["version"])
	}
	c.Node, err = strconv.ParseInt(fields["node"], 10, 64)
	if err == nil && c.Node != node {
		return lease.Cell{}, fmt.Sprintf("it is the cell of node %d", c.Node)
	}
	c.Value = bytes.Clone(value[:length])
	// Whatever is not byte for byte what would be written was written by somebody else,
	// or is not what was written.
	if err != nil || !bytes.Equal(encode(c), data) {
		return lease.Cell{}, "its checksum does not match: it was changed or damaged"
	}
	return c, ""
}
