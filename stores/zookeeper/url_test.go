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

// Other bad URLs are tried in package stores.
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
	if err == nil || !strings.Contains(err.Error(), "namespace \"a/b\"") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open with a bad namespace: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	if _, err := New(nil, "x"); err == nil {
		t.Error("New took nil")
	}
	if _, err := New(nil, "a/b"); err == nil {
		t.Errorf("New with a bad namespace: %v", err)
	}
	// Nothing listens there, and nothing is asked.
	s := openOffline(t)
	for _, key := range []string{"", "A", "a//b"} {
		if _, err := s.Read(limited(t), key); err == nil || !strings.Contains(err.Error(), "zookeeper at 127.0.0.1:1: read "+key) {
			t.Errorf("Read(%q): %v", key, err)
		}
		if _, err := swapCell(limited(t), s, stores.Cell{Key: key}, nil); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap(%q): %v", key, err)
		}
	}
}

// The message says what was asked, and why there was no answer.
func TestDownIsNamed(t *testing.T) {
	for _, rawURL := range []string{"zk://127.0.0.1:1,localhost:2", "zks://127.0.0.1:1,localhost:2/x"} {
		s := openURL(t, rawURL)
		err := servertest.Refused(t, func(ctx context.Context) error { _, err := s.List(ctx, "", "\x7f", 9); return err })
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, zk.ErrNoServer) {
			t.Fatal(err)
		}
		for _, want := range []string{"zookeeper at 127.0.0.1:1,localhost:2: list cells", "refused"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	err := servertest.Refused(t, func(ctx context.Context) error { _, err := Open(ctx, "zk://u:SECRET@127.0.0.1:1"); return err })
	if err == nil || !strings.Contains(err.Error(), "zookeeper at 127.0.0.1:1: open: ") || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open: %v", err)
	}
}
