package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/lease"
)

func TestParseURL(t *testing.T) {
	schemes := []string{"etcd", "etcds"}
	got, err := parseURL("etcd://u%40:p%3A:%2F@h1,h2:7,[::1]:8,[::2]/a/b/?namespace=n-1&cacert=%40x", "99", schemes, tlsOptions...)
	if err != nil {
		t.Fatal(err)
	}
	if got.user != "u@" || got.password != "p::/" || got.path != "/a/b" || got.namespace != "n-1" || got.options["cacert"] != "@x" ||
		!slices.Equal(got.hosts, []string{"h1:99", "h2:7", "[::1]:8", "[::2]:99"}) {
		t.Errorf("parsed as %+v", got)
	}
	if got, err = parseURL("etcd://h", "99", schemes); err != nil || got.namespace != lease.DefaultNamespace {
		t.Errorf("without options: %+v, %v", got, err)
	}
}

// No error shows a password, however mistyped the URL.
func TestBadURL(t *testing.T) {
	for _, rawURL := range []string{
		"", "x", "etcd", "etcd:", "etcd:/", "etcd://", "other://u:SECRET@h", "u:SECRET@h", "u:SECRET@etcd://h",
		"etcd://u:SECRET@", "etcd://u:SECRET@h1,,h2", "etcd://u:SECRET@h:port", "etcd://u:SEC/RET@h", "etcd://u:SEC?RET@h",
		"etcd://u:SEC#RET@h", "etcd://u:SECRET%@h", "etcd://u:SECRET%zz@h", "etcd://u:SECRET@h:1:2", "etcd://u:SECRET h",
		"etcd://u:SECRET@h\x00", "etcd://u:SECRET@h\n", "etcd://u:SECRET@h?x=SECRET", "etcd://u:SECRET@h?SECRET=1",
		"etcd://u:SECRET@h?namespace=a&namespace=b", "etcd://u:SECRET@h?a;b", "etcd://u:SECRET@h?%zz", "etcd://u:SECRET@h/%zz",
		"etcd://u:SECRET@h?namespace=", "etcd://u:SECRET@h?namespace=a/b", "etcd://u:SECRET@h?namespace=" + strings.Repeat("n", 49),
		"etcd://u:SECRET@h/a//b", "etcd://u:SECRET@h/a/../b", "etcd://u:SECRET@h#f", "etcd://u:SECRET@h?cacert=/none",
		"etcds://u:SECRET@h?cacert=/none", "etcds://u:SECRET@h?cert=/none", "etcds://u:SECRET@h?key=/none",
		"etcds://u:SECRET@h?cacert=" + emptyFile(t), "etcd://:SECRET@h/x//", "etcd://h/path", "etcd://u@h", "etcd://:SECRET@h",
	} {
		s, err := Open(limited(t), rawURL)
		var bad *URLError
		var name *lease.NamespaceError
		if !errors.As(err, &bad) && !errors.As(err, &name) {
			t.Errorf("Open(%q): %v, %v; want a *URLError or a *lease.NamespaceError", rawURL, s, err)
			continue
		}
		if strings.Contains(err.Error(), "SEC") || strings.Contains(err.Error(), "RET") {
			t.Errorf("Open(%q): %v", rawURL, err)
		}
	}
}

func emptyFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
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
	for _, node := range []int64{-1, maxNode, 1 << 62, -1 << 63} {
		var failed *Error
		if _, err := s.Read(limited(t), node); !errors.As(err, &failed) || failed.Op != "read" || failed.Node != node {
			t.Errorf("Read(%d): %v", node, err)
		}
		if _, err := s.Swap(limited(t), lease.Cell{Node: node}, nil); !errors.As(err, &failed) || errors.Is(err, lease.ErrConflict) {
			t.Errorf("Swap(%d): %v", node, err)
		}
	}
}
