package engine_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// secret is a password that no other part of an error can look like.
const secret = "x9cretPassw0rd"

var urlSeeds = []string{
	"", "x://h", "xs://u:p@h1,h2:7,[::1]:8/a/b/?namespace=n-1&own=o", "x://u:%zz@h", "x://h?namespace=a/b",
	"redis://:p@h:1/0?replicas=2", "postgres://u:p@h/db?sslmode=disable&table=t", "x://@", "x://[::1", "://", "x://h?own=1&own=2",
}

// FuzzParseURL takes URLs apart, both kinds, as they are and with a password in every
// place that may be one.
func FuzzParseURL(f *testing.F) {
	for _, seed := range urlSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := format.Parse(text)
		if err == nil {
			if len(u.Hosts) == 0 || u.Scheme != "x" && u.Scheme != "xs" {
				t.Errorf("%q: %+v", text, u)
			}
			for _, host := range u.Hosts {
				if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
					t.Errorf("%q: host %q", text, host)
				}
			}
			if err := stores.CheckNamespace(u.Namespace); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		typed(t, text, err)
		d, err := engine.ParseDriverURL(text, []string{"x", "redis", "postgres"}, "own")
		if err == nil {
			if err := stores.CheckNamespace(d.Namespace); err != nil || d.URL.Query().Has("own") || d.URL.Query().Has("namespace") {
				t.Errorf("%q: %+v", text, d)
			}
		}
		typed(t, text, err)

		if strings.Contains(text, secret) {
			return
		}
		for _, rawURL := range []string{"x://u:" + secret + "@" + text, "x://u:" + secret + text + "@h", "x://u:" + text + secret + "@h", text + secret} {
			_, err := format.Parse(rawURL)
			quiet(t, rawURL, err)
			_, err = engine.ParseDriverURL(rawURL, []string{"x"}, "own")
			quiet(t, rawURL, err)
		}
	})
}

func typed(t *testing.T, text string, err error) {
	var bad *stores.URLError
	if err != nil && !errors.As(err, &bad) {
		t.Errorf("%q: %T: %v", text, err, err)
	}
}

// quiet looks for the password in an error, except for that of a namespace, which is
// where the URL says so.
func quiet(t *testing.T, rawURL string, err error) {
	if err != nil && !strings.Contains(err.Error(), "namespace \"") && strings.Contains(fmt.Sprintf("%v %#v", err, err), secret) {
		t.Errorf("%q: %v shows the password", rawURL, err)
	}
}
