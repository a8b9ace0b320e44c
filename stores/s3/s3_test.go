package s3

import (
	"context"
	"crypto/md5" //nolint:gosec // an ETag
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	if _, err := open(t.Context(), "s3://bucket"); err == nil || !strings.Contains(err.Error(), "no region") {
		t.Errorf("without a region: %v", err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	storetest.TestURLs(t, open, "s3://bucket", map[string]string{
		"gcs://b":                         "s3://",
		"s3://":                           "want s3://BUCKET",
		"s3://key:SECRET@bucket?region=x": "credentials do not belong",
		"s3://bucket?endpoint=h:9000":     "want https://HOST",
		"s3://bucket?endpoint=http://u:SECRET%40h":    "want https://HOST",
		"s3://b?region=x":                             "BUCKET",
		"s3://bucket?endpoint=http://h/path":          "want https://HOST",
		"s3://bucket?region=x&secret=SECRET":          "unknown option",
		"s3://bucket:9000?region=x":                   "want s3://BUCKET",
		"s3://bucket?endpoint=https://h&cacert=/none": "option cacert",
	})
}

// fake is a server that keeps objects and heeds conditions, but for what is set.
type fake struct {
	ignoresNew, ignoresOld bool          // If-None-Match, If-Match
	gap                    time.Duration // between the check of a condition and the write
	status                 int           // of each answer, instead of its own
	code                   string
	rules                  string // of the bucket's lifecycle

	mu      sync.Mutex
	objects map[string]string
}

func etag(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // an ETag
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Server", "FakeStore")
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
	text, ok := f.objects[r.URL.Path]
	switch none, same := r.Header.Get("If-None-Match"), r.Header.Get("If-Match"); {
	case r.URL.Query().Has("lifecycle") && f.rules != "":
		fmt.Fprintf(w, "<LifecycleConfiguration>%s</LifecycleConfiguration>", f.rules)
	case r.Method == http.MethodGet && !ok:
		fail(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag(text))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, text)
	case none == "*" && ok && !f.ignoresNew, same != "" && same != etag(text) && !f.ignoresOld:
		fail(http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		if f.gap > 0 {
			f.mu.Unlock()
			time.Sleep(f.gap) // a server that checks first and locks later: what it does wrong
			f.mu.Lock()
		}
		f.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", etag(string(body)))
	}
}

func (f *fake) open(t *testing.T) *Store {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	f.objects = make(map[string]string)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := open(t.Context(), "s3://bucket/p?endpoint="+server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.(*Store)
}

// A server that ignores a condition, or checks it before it locks, is refused by its name; no other is.
func TestProbe(t *testing.T) {
	for name, test := range map[string]struct {
		server      *fake
		open, probe error
	}{
		"honest":                {&fake{}, nil, nil},
		"ignores If-None-Match": {&fake{ignoresNew: true}, errIgnores, errRaces},
		"ignores If-Match":      {&fake{ignoresOld: true}, errIgnores, errRaces},
		"races":                 {&fake{gap: 20 * time.Millisecond}, nil, errRaces},
		"no such method":        {&fake{status: 501, code: "NotImplemented"}, errIgnores, errIgnores},
		"no bucket":             {&fake{status: 404, code: "NoSuchBucket"}, advice["NoSuchBucket"], advice["NoSuchBucket"]},
		"no right":              {&fake{status: 403, code: "AccessDenied"}, errRights, errRights},
		"other right":           {&fake{status: 403, code: "Odd"}, errRights, errRights},
		"clock":                 {&fake{status: 403, code: "RequestTimeTooSkewed"}, advice["RequestTimeTooSkewed"], advice["RequestTimeTooSkewed"]},
		"slow down":             {&fake{status: 503, code: "SlowDown"}, errSlow, errSlow},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.server.open(t)
			_, err := s.Durability(t.Context())
			if !errors.Is(err, test.open) {
				t.Errorf("Durability: %v, want %v", err, test.open)
			}
			if err != nil && test.open == errIgnores && test.server.status == 0 && !strings.Contains(err.Error(), "FakeStore") {
				t.Errorf("the server is not named: %v", err)
			}
			if err := s.Probe(t.Context()); !errors.Is(err, test.probe) {
				t.Errorf("Probe: %v, want %v", err, test.probe)
			}
		})
	}
}

// A rule that deletes the cells is a risk, and no other rule is.
func TestLifecycle(t *testing.T) {
	const rule = "<Rule><ID>r</ID><Status>%s</Status><Filter><Prefix>%s</Prefix></Filter><Expiration><Days>9</Days></Expiration></Rule>"
	for rules, want := range map[string]int{
		"": 0, fmt.Sprintf(rule, "Enabled", ""): 1, fmt.Sprintf(rule, "Enabled", "p/"): 1, fmt.Sprintf(rule, "Enabled", "p/tickflake/node/"): 1,
		fmt.Sprintf(rule, "Enabled", "q/"): 0, fmt.Sprintf(rule, "Disabled", ""): 0,
		"<Rule><Status>Enabled</Status><Filter/><NoncurrentVersionExpiration><NoncurrentDays>9</NoncurrentDays></NoncurrentVersionExpiration></Rule>": 0,
	} {
		s := (&fake{rules: rules}).open(t)
		promises, err := s.Durability(t.Context())
		if err != nil || len(promises.Risks) != want {
			t.Errorf("%s: %v, %v", rules, promises, err)
		}
	}
}

// Without credentials the error says where they are looked for, at the end of the context or before.
func TestNoCredentials(t *testing.T) {
	var server fake
	s := server.open(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.Read(ctx, "node/0000001")
	if !errors.Is(err, errLogin) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
	if stores.KindOf(err) == stores.Unknown {
		t.Errorf("of no kind: %v", err)
	}
}
