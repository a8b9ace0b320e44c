package stores_test

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
)

var format = stores.URLFormat{
	Plain:   stores.URLScheme{Name: "x", Port: "99"},
	TLS:     stores.URLScheme{Name: "xs", Port: "100"},
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
		"other://u:s3cret@h":                    "unknown scheme",
		"u:s3cret@h":                            "unknown scheme",
		"u:s3cret@x://h":                        "unknown scheme",
		"x://":                                  "bad host",
		"x://u:s3cret@":                         "bad host",
		"x://u:s3cret@h1,,h2":                   "bad host",
		"x://u:s3cret@h:port":                   "bad host",
		"x://u:s3cret@h]":                       "bad host",
		"x://u:s3cret@h:1:2":                    "bad host",
		"x://u:s3cret h":                        "bad host",
		"x://u:s3cret@h\x00":                    "bad host",
		"x://u:s3cret@h\n":                      "bad host",
		"x://u:s3/cret@h":                       "an @ after the host; write / ? # @ in a password or an option as %2F %3F %23 %40",
		"x://u:s3?cret@h":                       "an @ after the host",
		"x://u:s3#cret@h":                       "an @ after the host",
		"x://u:s3cret%@h":                       "write % as %25",
		"x://u:s3cret%zz@h":                     "not percent-encoded",
		"x://u:s3cret@h/%zz":                    "bad path after the host",
		"x://u:s3cret@h#f":                      "bad path after the host",
		"x://u:s3cret@h?a;b":                    "bad options",
		"x://u:s3cret@h?%zz":                    "bad options",
		"x://u:s3cret@h?a=s3cret":               "unknown option; there are namespace, own, cacert, cert, key",
		"x://u:s3cret@h?s3cret=1":               "unknown option",
		"x://u:s3cret@h?namespace=a&namespace=": "an option is given twice",
		"x://u:s3cret@h?namespace=":             "x store URL: option namespace: namespace \"\": its length is 0",
		"x://u:s3cret@h?namespace=a/b":          "holds '/'",
		"x://u:s3cret@h?namespace=" + strings.Repeat("n", 49): "its length is 49",
		"x://u:s3cret@h?cacert=/none":                         "option cacert needs the scheme xs://",
		"x://u:s3cret@h?key=/none":                            "option key needs the scheme xs://",
		"xs://u:s3cret@h?cacert=/none":                        "option cacert: open /none",
		"xs://u:s3cret@h?cacert=empty.pem":                    "option cacert: no certificate in empty.pem",
		"xs://u:s3cret@h?cert=/none":                          "options cert and key: open",
		"xs://u:s3cret@h?key=/none":                           "options cert and key: open",
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
		u, err := stores.ParseDriverURL(c.url, []string{"x", "y"}, "own")
		require.NoError(t, err, c.url)
		assert.Equal(t, c.namespace, u.Namespace)
		assert.Equal(t, c.rest, u.URL.String())
		assert.NotContains(t, u.Own, "own")
	}
	u, err := stores.ParseDriverURL("x://h/d?own=", []string{"x"}, "own")
	require.NoError(t, err)
	assert.Contains(t, u.Own, "own", "and empty")
}

func TestParseDriverURLOfBadOnes(t *testing.T) {
	for rawURL, want := range map[string]string{
		"":                                         "begins with x:// or y://",
		"h/s3cret":                                 "begins with x://",
		"z://u:s3cret@h/d":                         "begins with x://",
		"x:u:s3cret@h":                             "begins with x://",
		"x://u:s3cret%zz@h/d":                      "x store URL: it is malformed",
		"x://u:s3/cret@h/d":                        "percent-encode",
		"x://u:12/s3cret@h/d":                      "@ or # after the host",
		"x://u:12?s3cret@h/d":                      "@ or # after the host",
		"x://u:12#s3cret@h/d":                      "@ or # after the host",
		"x://u:12#s3cret":                          "@ or # after the host",
		"x://u:s3 cret@h/d":                        "malformed",
		"x://u:s3cret\x00@h/d":                     "malformed",
		"x://u:s3cret@h:port/d":                    "malformed",
		"x://u:s3cret@h/d?a=%z":                    "parameters are malformed",
		"x://u:s3cret@h/d?a;b":                     "parameters are malformed",
		"x://u:s3cret@h/d?namespace=":              "the parameter namespace cannot be used: ",
		"x://u:s3cret@h/d?namespace=a.b":           "holds '.'",
		"x://u:s3cret@h/d?namespace=a&namespace=a": "it has the parameter namespace twice",
		"x://u:s3cret@h/d?own=a&own=b":             "it has the parameter own twice",
		"x://u:s3cret@h/d?namespace=" + strings.Repeat("n", 49): "its length is 49",
	} {
		_, err := stores.ParseDriverURL(rawURL, []string{"x", "y"}, "own")
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
		assert.NotContains(t, text, "s3", rawURL)
		assert.NotContains(t, text, "cret", rawURL)
	}
}

func TestWithhold(t *testing.T) {
	const always = "its message is withheld, since it may show a password"
	for message, want := range map[string]string{
		"":                              always,
		"bad s3cret":                    always,
		"bad sslmodes, my_sslmode":      always,
		"bad sslmode s3cret (CA files)": always + "; it is about: sslmode",
		"CA file of sslmode: s3cret":    always + "; it is about: sslmode, CA file",
	} {
		cause := errors.New(message)
		err := stores.Withhold(cause, message, "sslmode", "CA file")
		assert.EqualError(t, err, want)
		assert.NotErrorIs(t, err, cause)
	}
	for cause, want := range map[error]string{fs.ErrNotExist: "does not exist", fs.ErrPermission: "may not be read"} {
		err := stores.Withhold(&fs.PathError{Op: "open", Path: "s3cret", Err: cause}, "open s3cret")
		assert.EqualError(t, err, always+"; a file that the URL names "+want)
	}
}
