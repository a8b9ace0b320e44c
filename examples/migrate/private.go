package migrate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net"
)

// PrivateAddress returns the number for lease.WithNode that sonyflake takes without a MachineID: the low 16 bits
// of the first private IPv4 address.
func PrivateAddress() (int64, error) {
	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsPrivate() && ip.IP.To4() != nil {
			return int64(binary.BigEndian.Uint16(ip.IP.To4()[2:])), nil
		}
	}
	return 0, cmp.Or(err, errors.New("no private IPv4 address"))
}
