package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

// both parses a URL in both ways.
func both(rawURL string) (u, d *engine.URL, parse, driver error) {
	if u, parse = engine.ParseURL(rawURL, "x:99", "xs:100", "own"); parse == nil {
		_, parse = dial.TLS(u)
	}
	d, driver = engine.ParseDriverURL(rawURL, []string{"x", "xs"}, "own")
	return u, d, parse, driver
}

func TestURLs(t *testing.T) {
	u, _, err, _ := both("x://u%40:p%3A:%2F@h1,h2:7,[::1]:8,[::2]/a/b/?namespace=n-1&own=o")
	require.NoError(t, err)
	assert.Equal(t, "x u@ p::/ /a/b n-1", strings.Join([]string{u.Scheme, u.User, u.Password, u.Path, u.Namespace}, " "))
	assert.Equal(t, []string{"h1:99", "h2:7", "[::1]:8", "[::2]:99"}, u.Hosts)
	assert.Equal(t, map[string]string{"own": "o"}, u.Options)
	u, _, err, _ = both("XS://h")
	require.NoError(t, err)
	assert.Equal(t, []string{"h:100"}, u.Hosts)
	config, err := dial.TLS(u)
	require.NoError(t, err)
	assert.NotNil(t, config)

	for _, c := range []struct{ url, namespace, own, rest string }{
		{"x://h/d", stores.DefaultNamespace, "", "x://h/d"},
		{"xs://u:p%40ss@h:1/d?b=2%2F3&a=%41&namespace=Or-der_s1&own=o", "Or-der_s1", "o", "xs://u:p%40ss@h:1/d?b=2%2F3&a=%41"},
		{"X://u@h/d?n%61mespace=%61b&c=d,e&", "ab", "", "x://u@h/d?c=d,e"},
		{"x:///d?host=/run", stores.DefaultNamespace, "", "x:///d?host=/run"},
	} {
		_, d, _, err := both(c.url)
		require.NoError(t, err, c.url)
		assert.Equal(t, []string{c.namespace, c.own, c.rest}, []string{d.Namespace, d.Options["own"], d.URL.String()})
	}
}

// What a URL is refused for. An empty text stands for a URL that is taken.
func TestURLsThatAreRefused(t *testing.T) {
	t.Chdir(t.TempDir()) // whose random name may look like a password
	require.NoError(t, os.WriteFile("empty.pem", nil, 0o600))
	const scheme, host, tail, malformed = "store URL: unknown scheme, want x:// or xs://", "bad host", "an @ or # after the host; write / ? # @ in a password", "malformed"
	for rawURL, want := range map[string][2]string{ // by Parse, and by ParseDriverURL
		"":                             {scheme, scheme},
		"other://u:SECRET@h":           {scheme, scheme},
		"u:SECRET@x://h":               {scheme, scheme},
		"x://u:12/SECRET@h":            {tail, tail},
		"x://u:12?SECRET@h":            {tail, tail},
		"x://u:12#SECRET":              {tail, tail},
		"x://u:SECRET@h?a;b":           {"bad options", "bad options"},
		"x://u:SECRET@h?own=a&own=":    {"option own is given twice", "option own is given twice"},
		"x://u:SECRET@h?namespace=":    {`x store URL: option namespace: namespace "": its length is 0`, "its length is 0"},
		"x://u:SECRET@h?namespace=a/b": {"holds '/'", "holds '/'"},
		"x://u:SECRET%zz@h":            {"not percent-encoded", malformed},
		"x://u:SECRET%@h":              {"write % as %25", malformed},
		"x://u:SECRET@h:port":          {host, malformed},
		"x://u:SECRET@h\x00":           {host, malformed},
		"x://u:SECRET@h/%zz":           {"bad path after the host", malformed},
		"x://u:SECRET":                 {host, malformed},
		"x://h?SECRET;b":               {"bad options", "bad options"},
		"x://h/SECRET%zz":              {"bad path after the host", malformed},
		"x://":                         {host, ""},
		"x://u:SECRET@h1,,h2":          {host, ""},
		"x://u:SECRET@h]":              {host, ""},
		"x://u:SECRET@h:1:2":           {host, ""},
		"x://u:SECRET@h?a=SECRET":      {"unknown option; there are namespace, own, cacert, cert, key", ""},
		"x://u:SECRET@h?SECRET=1":      {"unknown option", ""},
		"x://u:SECRET@h?cacert=/none":  {"option cacert needs the scheme xs://", ""},
		"xs://u:SECRET@h?cacert=/none": {"option cacert: open /none", ""},
		"xs://h?cacert=empty.pem":      {"option cacert: no certificate in empty.pem", ""},
		"xs://u:SECRET@h?cert=/none":   {"options cert and key: open", ""},
	} {
		_, _, parse, driver := both(rawURL)
		for i, err := range []error{parse, driver} {
			if want[i] == "" {
				require.NoError(t, err, rawURL)
			} else {
				refused(t, rawURL, err, want[i])
			}
		}
	}
}

// refused requires a URLError with a text, and that neither it nor a cause shows the SECRET, however it is printed.
func refused(t *testing.T, rawURL string, err error, want string) {
	t.Helper()
	storetest.TestURLs(t, func(context.Context, string) (stores.Store, error) { return nil, err }, "", map[string]string{rawURL: want})
}

func TestWithhold(t *testing.T) {
	const always = "its message is withheld, since it may show a password"
	for message, want := range map[string]string{
		"bad SECRET":                    always,
		"bad sslmodes, my_sslmode":      always,
		"bad sslmode SECRET (CA files)": always + "; it is about: sslmode",
		"CA file of sslmode: SECRET":    always + "; it is about: sslmode, CA file",
	} {
		cause := errors.New(message)
		err := engine.Withhold(cause, message, "sslmode", "CA file")
		assert.EqualError(t, err, want)
		assert.NotErrorIs(t, err, cause)
	}
	for cause, want := range map[error]string{fs.ErrNotExist: "does not exist", fs.ErrPermission: "may not be read"} {
		err := engine.Withhold(&fs.PathError{Op: "open", Path: "SECRET", Err: cause}, "open SECRET")
		assert.EqualError(t, err, always+"; a file that the URL names "+want)
	}
}
