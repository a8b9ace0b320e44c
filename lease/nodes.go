package lease

import (
	"fmt"
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
	pod, _, _ := strings.Cut(host, ".")
	dash := strings.LastIndex(pod, "-")
	n, err := strconv.ParseUint(pod[dash+1:], 10, 63)
	if dash < 1 || err != nil {
		return 0, fmt.Errorf("host name %q: want that of a StatefulSet's pod, such as web-7", host)
	}
	return int64(n), nil
}
