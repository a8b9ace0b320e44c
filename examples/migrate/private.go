package migrate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net"

	"github.com/tickflake/tickflake/snowflake"
)

// PrivateAddress is a function for lease.WithNode: it returns the number that sonyflake takes without a
// MachineID, the low 16 bits of the first private IPv4 address.
func PrivateAddress(snowflake.Layout) (int64, error) {
	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsPrivate() && ip.IP.To4() != nil {
			return int64(binary.BigEndian.Uint16(ip.IP.To4()[2:])), nil
		}
	}
	return 0, cmp.Or(err, errors.New("no private IPv4 address"))
}
