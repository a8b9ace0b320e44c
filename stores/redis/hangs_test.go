package redis_test

import (
	"strings"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestHangs(t *testing.T) {
	s := start(t)
	url := func(addr, namespace string) string {
		other := *s
		other.addr = addr
		return other.url("namespace=" + namespace)
	}
	storetest.TestHangs(t, storetest.Hangs{
		Addr: s.addr, URL: url,
		TLS: func(addr, namespace string) string {
			return strings.Replace(url(addr, namespace), "redis://", "rediss://", 1)
		},
		Host: servertest.Host, Resolve: servertest.Resolve, Suspend: s.Suspend, Resume: s.Resume,
	})
}
