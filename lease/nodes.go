package lease

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/snowflake"
)

// NodeSource gives the node number of this process for [WithNode], for deployments that
// choose the number without a store. The error names the source. [Claim] refuses a
// number that the layout does not have.
//
// Use a store with every source, at least a directory: it makes
// restarts safe, and two processes with the same number in one store never issue the
// same ID. Without a common store, the probabilities given with each source are those of
// duplicates.
type NodeSource func(snowflake.Layout) (int64, error)

// NodeNumber is the source of a known number, for example from a flag. Two
// processes with the same number collide.
func NodeNumber(n int64) NodeSource {
	return func(snowflake.Layout) (int64, error) { return n, nil }
}

// NodeFromEnv reads the number, in decimal, from an environment variable. Two
// processes with the same number collide, as with a copied unit file or a
// deployment of two replicas.
func NodeFromEnv(name string) NodeSource {
	return func(snowflake.Layout) (int64, error) {
		text, ok := os.LookupEnv(name)
		if !ok {
			return 0, fmt.Errorf("environment variable %s is not set: want a node number", name)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("environment variable %s is %.40q: want a node number", name, text)
		}
		return n, nil
	}
}

// NodeFromStatefulSet is the ordinal of a pod in a Kubernetes StatefulSet: the 7 of
// the host name "name-7". Kubernetes gives it to one pod at a time, unless a pod is
// deleted by force while its node cannot be reached: then two run until the node is
// back. Pods of two StatefulSets have the same ordinals. A pod with hostNetwork has the
// host name of its machine: pass the ordinal in an environment variable, from the
// label apps.kubernetes.io/pod-index, and use [NodeFromEnv].
func NodeFromStatefulSet() NodeSource {
	return func(snowflake.Layout) (int64, error) {
		host, err := os.Hostname()
		if err != nil {
			return 0, fmt.Errorf("host name: %w", err)
		}
		return ordinal(host)
	}
}

func ordinal(host string) (int64, error) {
	host, _, _ = strings.Cut(host, ".")
	name, digits, ok := lastCut(host, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || name == "" || err != nil || n < 0 || digits[0] == '+' {
		return 0, fmt.Errorf("host name %q: want that of a StatefulSet's pod, such as web-7", host)
	}
	return n, nil
}

func lastCut(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// NodeFromPrivateIPv4 uses the low bits of the host's private IPv4 address
// (RFC 1918), as many as a node number has. Hosts of one subnet that is no larger
// than that, a /22 for 10 bits, never collide; among n hosts spread over more, two
// collide with a probability of about 1-exp(-n²/2N) for N node numbers: 4.8% for 10
// hosts, 70% for 50, with N = 1024. Processes on one host always collide, and so may
// containers with addresses of the bridges of different hosts.
func NodeFromPrivateIPv4() NodeSource {
	return func(layout snowflake.Layout) (int64, error) {
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return 0, fmt.Errorf("network interfaces: %w", err)
		}
		return lowBits(addresses, layout.NodeBits)
	}
}

// lowBits takes the first private address, in the order of the interfaces.
func lowBits(addresses []net.Addr, nodeBits int) (int64, error) {
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err != nil {
			continue
		}
		if ip := prefix.Addr().Unmap(); ip.Is4() && ip.IsPrivate() {
			b := ip.As4()
			n := int64(b[0])<<24 | int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3])
			return n & (1<<nodeBits - 1), nil
		}
	}
	return 0, fmt.Errorf("none of the host's %d addresses is a private IPv4 one (10/8, 172.16/12, 192.168/16): choose the node number in another way", len(addresses))
}

// NodeFromHostName is a hash of the host name. Among n hosts, two collide with a
// probability of about 1-exp(-n²/2N) for N node numbers: 4.8% for 10 hosts, 70% for
// 50, with N = 1024. Processes on one host always collide.
func NodeFromHostName() NodeSource {
	return func(layout snowflake.Layout) (int64, error) {
		host, err := os.Hostname()
		if err != nil {
			return 0, fmt.Errorf("host name: %w", err)
		}
		return hashed(host, layout.NodeBits), nil
	}
}

func hashed(host string, nodeBits int) int64 {
	h := fnv.New64a()
	h.Write([]byte(host))
	sum := h.Sum64()
	return int64((sum ^ sum>>32) & (1<<nodeBits - 1)) // the low bits of FNV alone are poor
}
