package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// The rest of what is no URL is tried out in package remote.
func TestBadURL(t *testing.T) {
	for rawURL, want := range map[string]string{
		"etcd://u:SECRET@h":           "store URL: unknown scheme, want zk:// or zks://",
		"zk://u:SECRET@h/a//b":        "bad path after the host; want the chroot",
		"zk://u:SECRET@h/a/../b":      "bad path after the host; want the chroot",
		"zk://u:SECRET@h/./x":         "bad path after the host; want the chroot",
		"zk://u@h":                    "a user without a password, or",
		"zk://:SECRET@h/x//":          "a user without a password, or",
		"zk://u:SECRET@h?x=SECRET":    "there are namespace, cacert, cert, key",
		"zk://u:SECRET@h?cert=/none":  "needs the scheme zks://",
		"zks://u:SECRET@h?cert=/none": "options cert and key",
	} {
		_, err := Open(limited(t), rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		if !ok || !strings.Contains(bad.Error(), want) || strings.Contains(fmt.Sprintf("%v %#v", bad, bad), "SECRET") {
			t.Errorf("Open(%q): %v; want %q", rawURL, err, want)
		}
	}
	_, err := Open(limited(t), "zk://u:SECRET@h?namespace=a/b")
	if _, ok := errors.AsType[*lease.NamespaceError](err); !ok || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open with a bad namespace: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	if _, err := New(nil, "x"); err == nil {
		t.Error("New took nil")
	}
	var name *lease.NamespaceError
	if _, err := New(nil, "a/b"); !errors.As(err, &name) {
		t.Errorf("New with a bad namespace: %v", err)
	}
	// Nothing listens there, and nothing is asked.
	s := openOffline(t)
	for _, node := range []int64{-1, 1 << 22, 1 << 62, -1 << 63} {
		if _, err := s.Read(limited(t), node); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("zookeeper at 127.0.0.1:1: read cell %d of", node)) {
			t.Errorf("Read(%d): %v", node, err)
		}
		if _, err := swap(limited(t), s, stores.Cell{Node: node}, nil); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap(%d): %v", node, err)
		}
	}
}

// The message says what was asked, and why nobody answered.
func TestDownIsNamed(t *testing.T) {
	for _, rawURL := range []string{"zk://127.0.0.1:1,localhost:2", "zks://127.0.0.1:1,localhost:2/x"} {
		s := openURL(t, rawURL)
		err := servertest.Refused(t, func(ctx context.Context) error { _, err := lease.Inspect(ctx, s); return err })
		failed, ok := errors.AsType[*stores.StoreError](err)
		if !ok || !errors.Is(failed, context.DeadlineExceeded) && !errors.Is(failed, zk.ErrNoServer) {
			t.Fatal(err)
		}
		for _, want := range []string{"zookeeper at 127.0.0.1:1,localhost:2: list cells", "refused"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	err := servertest.Refused(t, func(ctx context.Context) error { _, err := Open(ctx, "zk://u:SECRET@127.0.0.1:1"); return err })
	if failed, ok := errors.AsType[*OpenError](err); !ok ||
		failed.Hosts != "127.0.0.1:1" || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open: %v", err)
	}
}
