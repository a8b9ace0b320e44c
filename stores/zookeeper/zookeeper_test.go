package zookeeper

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
		_, err := open(t.Context(), rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		if !ok || !strings.Contains(bad.Error(), want) || strings.Contains(fmt.Sprintf("%v %#v", bad, bad), "SECRET") {
			t.Errorf("Open(%q): %v; want %q", rawURL, err, want)
		}
	}
	_, err := open(t.Context(), "zk://u:SECRET@h?namespace=a/b")
	if err == nil || !strings.Contains(err.Error(), "namespace \"a/b\"") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open with a bad namespace: %v", err)
	}
	if _, err := New(nil, "x"); err == nil {
		t.Error("New took nil")
	}
	if _, err := New(nil, "a/b"); err == nil {
		t.Errorf("New with a bad namespace: %v", err)
	}
}

// A round begins with the server after the last good one, and ends with it, so that the
// driver waits only once all have been tried.
func TestServers(t *testing.T) {
	var h servers
	if err := h.Init([]string{"a", "b", "c"}); err != nil || h.Len() != 3 {
		t.Fatal(err, h.Len())
	}
	want := func(host string, round bool) {
		t.Helper()
		if h, r := h.Next(); h != host || r != round {
			t.Errorf("Next: %s, %v; want %s, %v", h, r, host, round)
		}
	}
	want("a", false)
	want("b", false)
	h.Connected()
	want("c", false)
	want("a", false)
	want("b", true)
	want("c", false)
}
