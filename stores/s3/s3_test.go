package s3

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	_, err := open(t.Context(), "s3://bucket")
	require.ErrorContains(t, err, "no region")
	t.Setenv("AWS_REGION", "eu-central-1")
	storetest.TestURLs(t, open, "s3://bucket", map[string]string{
		"s3://":                                               "want s3://BUCKET",
		"s3://b?region=x":                                     "want s3://BUCKET",
		"s3://key:SECRET@bucket?region=x":                     "credentials do not belong",
		"s3://bucket?endpoint=h:9000":                         "want https://HOST",
		"s3://bucket?endpoint=http://u:SECRET%40h":            "want https://HOST",
		"s3://bucket?endpoint=http://h/path":                  "want https://HOST",
		"s3://bucket?region=x&secret=SECRET":                  "unknown option",
		"s3://bucket?endpoint=https://storage.googleapis.com": "Google Cloud Storage ignores If-Match",
		"s3://ids--use1-az4--x-s3?region=x":                   "directory bucket",
		"s3://bucket?endpoint=https://h&cacert=/none":         "option cacert",
	})
}

// fake is a server that keeps objects and heeds conditions, but for what is set.
type fake struct {
	ignoresNew, ignoresOld bool              // If-None-Match, If-Match
	status                 int               // of each answer, instead of its own
	code                   string            // with it
	asked                  map[string]string // the answers to questions about the bucket: lifecycle, versioning

	mu      sync.Mutex
	objects map[string]string
}

func etag(text string) string { return fmt.Sprintf("\"%x\"", sha256.Sum256([]byte(text))) }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fail := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
	}
	if f.status != 0 {
		fail(f.status, f.code)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	question, _, _ := strings.Cut(r.URL.RawQuery, "=")
	text, ok := f.objects[r.URL.Path]
	switch none, same := r.Header.Get("If-None-Match"), r.Header.Get("If-Match"); {
	case f.asked[question] != "":
		_, _ = io.WriteString(w, f.asked[question])
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, "<ListBucketResult><Contents><Key>p/tickflake/b!</Key></Contents><Contents><Key>p/tickflake/a!</Key></Contents></ListBucketResult>")
	case !ok && (r.Method == http.MethodGet || same != "" && !f.ignoresOld):
		fail(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet:
		tag := etag(text)
		if r.Header.Get("Accept-Encoding") == "gzip" { // as a proxy that compresses
			tag = "W/" + tag
		}
		w.Header().Set("ETag", tag)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, text)
	case none == "*" && ok && !f.ignoresNew, same != "" && same != etag(text) && !f.ignoresOld:
		fail(http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Header.Get("X-Amz-Checksum-Sha256") == "": // as a bucket with object lock
		fail(http.StatusBadRequest, "InvalidRequest")
	default:
		f.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", etag(string(body)))
	}
}

func (f *fake) open(t *testing.T) *engine.Skeleton[string] {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	f.objects = make(map[string]string)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := open(t.Context(), "s3://bucket/p?endpoint="+server.URL)
	require.NoError(t, err)
	return s.(*engine.Skeleton[string]) // the server closes its connections
}

// A server that ignores a condition is refused, and each refusal has its kind. That of a server
// that checks conditions too early is tried in package engine.
func TestProbe(t *testing.T) {
	for name, test := range map[string]struct {
		server *fake
		want   error
	}{
		"honest":                {&fake{}, nil},
		"ignores If-None-Match": {&fake{ignoresNew: true}, engine.ErrIgnores},
		"ignores If-Match":      {&fake{ignoresOld: true}, engine.ErrIgnores},
		"no such method":        {&fake{status: 501, code: "NotImplemented"}, engine.ErrIgnores},
		"no bucket":             {&fake{status: 404, code: "NoSuchBucket"}, advice["NoSuchBucket"]},
		"no right":              {&fake{status: 403, code: "AccessDenied"}, errRights},
		"credentials":           {&fake{status: 400, code: "ExpiredToken"}, errCredentials},
		"region":                {&fake{status: 301, code: "PermanentRedirect"}, errRegion},
		"clock":                 {&fake{status: 403, code: "RequestTimeTooSkewed"}, advice["RequestTimeTooSkewed"]},
		"a web server":          {&fake{status: 405}, errOther},
		"an empty web server":   {&fake{status: 404, code: "NoSuchKey"}, errOther},
		"another write":         {&fake{status: 409, code: "OperationAborted"}, stores.Transient},
		"slow down":             {&fake{status: 503, code: "SlowDown"}, errSlow},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.server.open(t)
			_, err := stores.CheckDurability(t.Context(), s)
			probe, gone := s.Own.Probe(t.Context(), true), s.Failed(t.Context(), "swap", "gone", s.Texts.Put(t.Context(), "gone", "tag", nil))
			assert.ErrorIs(t, err, test.want)
			if test.want == nil {
				assert.ErrorIs(t, gone, stores.ErrConflict, "the object is gone")
			}
			if test.want == nil || test.server.status != 0 {
				assert.ErrorIs(t, probe, test.want)
			}
		})
	}
}

// What deletes cells or keeps all that they were is a risk, and no other rule is. A bucket without order is
// refused.
func TestRisks(t *testing.T) {
	rule := func(status, prefix, does string) string {
		return fmt.Sprintf("<LifecycleConfiguration><Rule><ID>r</ID><Status>%s</Status><Filter><Prefix>%s</Prefix></Filter>%s</Rule></LifecycleConfiguration>", status, prefix, does)
	}
	const (
		expires   = "<Expiration><Days>9</Days></Expiration>"
		forgets   = "<NoncurrentVersionExpiration><NoncurrentDays>9</NoncurrentDays></NoncurrentVersionExpiration>"
		versioned = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
	)
	for name, test := range map[string]struct {
		rules, versions string
		want            []string
	}{
		"none":        {},
		"above":       {rules: rule("Enabled", "p/", expires), want: []string{"deletes objects"}},
		"below":       {rules: rule("Enabled", "p/tickflake/node/", expires), want: []string{"deletes objects"}},
		"beside":      {rules: rule("Enabled", "q/", expires)},
		"disabled":    {rules: rule("Disabled", "", expires)},
		"versions":    {versions: versioned, want: []string{"is versioned"}},
		"versions go": {rules: rule("Enabled", "", forgets), versions: versioned},
		"others' go":  {rules: rule("Enabled", "q/", forgets), versions: versioned, want: []string{"is versioned"}},
	} {
		s := (&fake{asked: map[string]string{"lifecycle": test.rules, "versioning": test.versions}}).open(t)
		is, err := stores.CheckDurability(t.Context(), s)
		require.NoError(t, err, name)
		require.Len(t, is.Risks, len(test.want), name)
		for i, want := range test.want {
			assert.Contains(t, is.Risks[i], want, name)
		}
		_, err = s.List(t.Context(), "", "z", 9)
		assert.ErrorIs(t, err, errOrder)
	}
}

// Without credentials the error says where they are looked for, at the end of the context or before.
func TestNoCredentials(t *testing.T) {
	s := new(fake).open(t)
	for name, value := range map[string]string{"AWS_SECRET_ACCESS_KEY": "", "HOME": t.TempDir(), "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.Read(ctx, "node/0000001")
	assert.True(t, errors.Is(err, errLogin) || errors.Is(err, context.DeadlineExceeded), err)
	assert.Equal(t, stores.Transient, stores.KindOf(err))
}
