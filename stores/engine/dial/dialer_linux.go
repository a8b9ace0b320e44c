package dial

import (
	"strings"
	"syscall"
)

// limitUnheard sets TCP_USER_TIMEOUT. Without it, Linux sends bytes again for a quarter of
// an hour.
func limitUnheard(network, _ string, c syscall.RawConn) error {
	const tcpUserTimeout = 18 // package syscall lacks it
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	problem := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unheard.Milliseconds()))
	})
	if problem != nil {
		return problem
	}
	return err
}
