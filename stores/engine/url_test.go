package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

var format = engine.URLFormat{
	Plain:   engine.URLScheme{Name: "x", Port: "99"},
	TLS:     engine.URLScheme{Name: "xs", Port: "100"},
	Options: []string{"own"},
}

func TestParse(t *testing.T) {
	u, err := format.Parse("x://u%40:p%3A:%2F@h1,h2:7,[::1]:8,[::2]/a/b/?namespace=n-1&cacert=%40x&own=o")
	require.NoError(t, err)
	assert.Equal(t, "x u@ p::/ /a/b n-1", strings.Join([]string{u.Scheme, u.User, u.Password, u.Path, u.Namespace}, " "))
	assert.Equal(t, []string{"h1:99", "h2:7", "[::1]:8", "[::2]:99"}, u.Hosts)
	assert.Equal(t, map[string]string{"cacert": "@x", "own": "o"}, u.Options)

	u, err = format.Parse("XS://h")
	require.NoError(t, err)
	assert.Equal(t, stores.DefaultNamespace, u.Namespace)
	assert.Equal(t, []string{"h:100"}, u.Hosts)
	config, err := u.TLSConfig()
	require.NoError(t, err)
	assert.NotNil(t, config)
}

func TestParseOfBadOnes(t *testing.T) {
	t.Chdir(t.TempDir()) // whose random name may look like a password
	require.NoError(t, os.WriteFile("empty.pem", nil, 0o600))
	for rawURL, want := range map[string]string{
		"":                                      "store URL: unknown scheme, want x:// or xs://",
		"x":                                     "unknown scheme",
		"x:":                                    "unknown scheme",
		"x:/":                                   "unknown scheme",
		"other://u:x9cret@h":                    "unknown scheme",
		"u:x9cret@h":                            "unknown scheme",
		"u:x9cret@x://h":                        "unknown scheme",
		"x://":                                  "bad host",
		"x://u:x9cret@":                         "bad host",
		"x://u:x9cret@h1,,h2":                   "bad host",
		"x://u:x9cret@h:port":                   "bad host",
		"x://u:x9cret@h]":                       "bad host",
		"x://u:x9cret@h:1:2":                    "bad host",
		"x://u:x9cret h":                        "bad host",
		"x://u:x9cret@h\x00":                    "bad host",
		"x://u:x9cret@h\n":                      "bad host",
		"x://u:s3/cret@h":                       "an @ after the host; write / ? # @ in a password or an option as %2F %3F %23 %40",
		"x://u:s3?cret@h":                       "an @ after the host",
		"x://u:s3#cret@h":                       "an @ after the host",
		"x://u:x9cret%@h":                       "write % as %25",
		"x://u:x9cret%zz@h":                     "not percent-encoded",
		"x://u:x9cret@h/%zz":                    "bad path after the host",
		"x://u:x9cret@h#f":                      "bad path after the host",
		"x://u:x9cret@h?a;b":                    "bad options",
		"x://u:x9cret@h?%zz":                    "bad options",
		"x://u:x9cret@h?a=x9cret":               "unknown option; there are namespace, own, cacert, cert, key",
		"x://u:x9cret@h?x9cret=1":               "unknown option",
		"x://u:x9cret@h?namespace=a&namespace=": "an option is given twice",
		"x://u:x9cret@h?namespace=":             "x store URL: option namespace: namespace \"\": its length is 0",
		"x://u:x9cret@h?namespace=a/b":          "holds '/'",
		"x://u:x9cret@h?namespace=" + strings.Repeat("n", 49): "its length is 49",
		"x://u:x9cret@h?cacert=/none":                         "option cacert needs the scheme xs://",
		"x://u:x9cret@h?key=/none":                            "option key needs the scheme xs://",
		"xs://u:x9cret@h?cacert=/none":                        "option cacert: open /none",
		"xs://u:x9cret@h?cacert=empty.pem":                    "option cacert: no certificate in empty.pem",
		"xs://u:x9cret@h?cert=/none":                          "options cert and key: open",
		"xs://u:x9cret@h?key=/none":                           "options cert and key: open",
	} {
		u, err := format.Parse(rawURL)
		if err == nil {
			_, err = u.TLSConfig()
		}
		isURLError(t, err, rawURL)
		require.ErrorContains(t, err, want, rawURL)
		hides(t, err, rawURL)
	}
}

func TestParseDriverURL(t *testing.T) {
	for _, c := range []struct{ url, namespace, rest string }{
		{"x://h/d", stores.DefaultNamespace, "x://h/d"},
		{"y://u:p%40ss@h:1/d?b=2%2F3&a=%41&namespace=Or-der_s1", "Or-der_s1", "y://u:p%40ss@h:1/d?b=2%2F3&a=%41"},
		{"x://u@h/d?n%61mespace=%61b&c=d,e&", "ab", "x://u@h/d?c=d,e"},
		{"X://h/d", stores.DefaultNamespace, "x://h/d"},
		{"x:///d?host=/run", stores.DefaultNamespace, "x:///d?host=/run"},
	} {
		u, err := engine.ParseDriverURL(c.url, []string{"x", "y"}, "own")
		require.NoError(t, err, c.url)
		assert.Equal(t, c.namespace, u.Namespace)
		assert.Equal(t, c.rest, u.URL.String())
		assert.NotContains(t, u.Own, "own")
	}
	u, err := engine.ParseDriverURL("x://h/d?own=", []string{"x"}, "own")
	require.NoError(t, err)
	assert.Contains(t, u.Own, "own", "and empty")
}

func TestParseDriverURLOfBadOnes(t *testing.T) {
	for rawURL, want := range map[string]string{
		"":                                         "begins with x:// or y://",
		"h/x9cret":                                 "begins with x://",
		"z://u:x9cret@h/d":                         "begins with x://",
		"x:u:x9cret@h":                             "begins with x://",
		"x://u:x9cret%zz@h/d":                      "x store URL: it is malformed",
		"x://u:s3/cret@h/d":                        "percent-encode",
		"x://u:12/x9cret@h/d":                      "@ or # after the host",
		"x://u:12?x9cret@h/d":                      "@ or # after the host",
		"x://u:12#x9cret@h/d":                      "@ or # after the host",
		"x://u:12#x9cret":                          "@ or # after the host",
		"x://u:s3 cret@h/d":                        "malformed",
		"x://u:x9cret\x00@h/d":                     "malformed",
		"x://u:x9cret@h:port/d":                    "malformed",
		"x://u:x9cret@h/d?a=%z":                    "parameters are malformed",
		"x://u:x9cret@h/d?a;b":                     "parameters are malformed",
		"x://u:x9cret@h/d?namespace=":              "the parameter namespace cannot be used: ",
		"x://u:x9cret@h/d?namespace=a.b":           "holds '.'",
		"x://u:x9cret@h/d?namespace=a&namespace=a": "it has the parameter namespace twice",
		"x://u:x9cret@h/d?own=a&own=b":             "it has the parameter own twice",
		"x://u:x9cret@h/d?namespace=" + strings.Repeat("n", 49): "its length is 49",
	} {
		_, err := engine.ParseDriverURL(rawURL, []string{"x", "y"}, "own")
		isURLError(t, err, rawURL)
		require.ErrorContains(t, err, want, rawURL)
		hides(t, err, rawURL)
	}
}

func isURLError(t *testing.T, err error, rawURL string) {
	t.Helper()
	_, ok := errors.AsType[*stores.URLError](err)
	require.True(t, ok, "%s: %v", rawURL, err)
}

// hides requires that neither an error nor a cause shows a part of the password,
// however it is printed.
func hides(t *testing.T, err error, rawURL string) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %#v", e, e, e)
		assert.NotContains(t, text, "x9", rawURL)
		assert.NotContains(t, text, "cret", rawURL)
	}
}

func TestWithhold(t *testing.T) {
	const always = "its message is withheld, since it may show a password"
	for message, want := range map[string]string{
		"":                              always,
		"bad x9cret":                    always,
		"bad sslmodes, my_sslmode":      always,
		"bad sslmode x9cret (CA files)": always + "; it is about: sslmode",
		"CA file of sslmode: x9cret":    always + "; it is about: sslmode, CA file",
	} {
		cause := errors.New(message)
		err := engine.Withhold(cause, message, "sslmode", "CA file")
		assert.EqualError(t, err, want)
		assert.NotErrorIs(t, err, cause)
	}
	for cause, want := range map[error]string{fs.ErrNotExist: "does not exist", fs.ErrPermission: "may not be read"} {
		err := engine.Withhold(&fs.PathError{Op: "open", Path: "x9cret", Err: cause}, "open x9cret")
		assert.EqualError(t, err, always+"; a file that the URL names "+want)
	}
}
