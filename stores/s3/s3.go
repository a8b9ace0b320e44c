package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = engine.Register("s3", []string{"endpoint", "region", "profile", "cacert"}, connect)

// connect opens a URL, as the package's doc describes it. It asks the server nothing yet.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	name := u.URL.Host
	region := cmp.Or(u.Options["region"], os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	at, err := url.Parse(cmp.Or(u.Options["endpoint"], os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")))
	switch {
	case u.URL.User != nil:
		return nil, u.Refuse("credentials do not belong in it; they come from AWS's environment variables, a profile or a role", nil)
	case s3utils.CheckValidBucketNameStrict(name) != nil:
		return nil, u.Refuse("want s3://BUCKET or s3://BUCKET/PREFIX, a bucket of 3 to 63 lower-case letters, digits, dots and hyphens, and the server as ?endpoint=https://HOST", nil)
	case u.URL.RawQuery != "":
		return nil, u.Refuse("unknown option; there are endpoint, region, profile, cacert and namespace", nil)
	case err != nil || at.String() != "" && (at.Host == "" || at.Scheme != "http" && at.Scheme != "https") || at.User != nil || strings.Trim(at.Path, "/") != "":
		return nil, u.Refuse("option endpoint: want https://HOST or http://HOST", nil)
	case strings.HasSuffix(at.Hostname(), ".googleapis.com"):
		return nil, u.Refuse("Google Cloud Storage ignores If-Match of a write, so IDs would be issued twice: take another server", nil)
	case strings.HasSuffix(name, "--x-s3"):
		return nil, u.Refuse("it is a directory bucket, which lists its objects in no order: take a general-purpose bucket", nil)
	case at.Host == "" && region == "":
		return nil, u.Refuse("no region; want region=NAME, or AWS_REGION in the environment, or another server by endpoint=https://HOST", nil)
	case at.Host == "":
		at = &url.URL{Scheme: "https", Host: "s3.amazonaws.com"} // the driver takes that of the region
	}
	secure, err := dial.Trust(u)
	if err != nil {
		return nil, err
	}
	transport, err := dial.NewTransport(most, conns, secure)
	if err != nil {
		return nil, err
	}
	transport.DisableCompression = true // a proxy that compresses makes the ETag weak, which no condition takes
	creds := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: u.Options["profile"]}, &credentials.IAM{},
	})
	client, err := minio.New(at.Host, &minio.Options{
		Creds: creds, Secure: at.Scheme == "https", Region: cmp.Or(region, "us-east-1"), Transport: transport,
		MaxRetries: 1, // one attempt only: the second would find the first, and fail
	})
	if err != nil {
		return nil, u.Refuse("bucket or endpoint", err)
	}
	prefix := strings.TrimLeft(strings.Trim(u.URL.Path, "/")+"/"+u.Namespace+"/", "/")
	b := &bucket{client: client, creds: creds, name: name, prefix: prefix}
	s := &engine.Skeleton[string]{
		Texts: b, Reads: conns / 2, Namespace: u.Namespace, At: "s3 at " + at.Host,
		Explain: func(_ context.Context, err error) error { return b.explain(err) },
		Conns:   transport,
	}
	s.Ask = func(ctx context.Context) (stores.Durability, error) {
		if err := engine.Heeds(ctx, s, "00000000000000000000000000000000"); err != nil {
			return stores.Durability{}, err
		}
		return stores.Durability{Risks: b.risks(ctx)}, nil
	}
	s.Own.Window = 5 * time.Minute // each write costs money
	s.Own.Probe = func(ctx context.Context, again bool) error {
		transport.CloseIdleConnections() // what balances the load between servers can choose once more
		defer transport.CloseIdleConnections()
		if err := engine.Races(ctx, s, again); err != nil {
			return s.Failed(ctx, "probe", "conditions", err)
		}
		return nil
	}
	return s, nil
}

// bucket keeps texts as objects of a bucket, for the skeleton. The revision of a text is its ETag.
type bucket struct {
	client *minio.Client
	creds  *credentials.Credentials
	name   string
	prefix string // of the objects of one namespace, with a slash at its end
}

const (
	// conns bounds the connections that are used, and most also counts those that the server has not closed yet.
	conns = 16
	most  = 2 * conns
	page  = 1000 // names of one request: no server gives more

	// end is the end of each object's name: servers on a file system cannot have the objects a and
	// a/b, and the objects a! and a/b! stand in the order of the keys a and a/b.
	end = "!"
)

// Get reads one object, in one request.
func (b *bucket) Get(ctx context.Context, key string, _ bool) (engine.Text[string], error) {
	none := engine.Text[string]{Latest: true}
	if err := b.ready(); err != nil {
		return none, err
	}
	body, info, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+key+end, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer body.Close()                                                //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(body, stores.MaxValue+64)) // more than a version and a space take
	return engine.Text[string]{Bytes: text, Found: true, Revision: info.ETag, Latest: true}, err
}

// Put writes one object, on the condition that it has the ETag, or, if that is "", that there
// is none. It is sent once.
func (b *bucket) Put(ctx context.Context, key, etag string, text []byte) error {
	if err := b.ready(); err != nil {
		return err
	}
	sum := sha256.Sum256(text) // a bucket with object lock wants one
	// To sign a stream, the driver's default, takes more, and its reader is not safe when the server redirects.
	options := minio.PutObjectOptions{ContentType: "text/plain; charset=utf-8", DisableMultipart: true, DisableContentSha256: true,
		UserMetadata: map[string]string{"x-amz-checksum-sha256": base64.StdEncoding.EncodeToString(sum[:])}}
	if etag == "" {
		options.SetMatchETagExcept("*")
	} else {
		options.SetMatchETag(etag)
	}
	_, err := minio.Core{Client: b.client}.PutObject(ctx, b.name, b.prefix+key+end, bytes.NewReader(text), int64(len(text)), "", hex.EncodeToString(sum[:]), options)
	switch answer := minio.ToErrorResponse(err); {
	case answer.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %w", engine.ErrBusy, err)
	case answer.StatusCode == http.StatusPreconditionFailed, answer.Code == minio.NoSuchKey && etag != "": // the object of the ETag is gone
		return fmt.Errorf("%w (%w)", stores.ErrConflict, err)
	}
	return err
}

// Scan lists names: one request for each thousand.
func (b *bucket) Scan(ctx context.Context, from, to string, most int, found func(key string, text []byte)) (more bool, err error) {
	if err := b.ready(); err != nil {
		return false, err
	}
	last := ""
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix, StartAfter: b.prefix + from, Recursive: true, MaxKeys: min(most, page),
	}) {
		if object.Err != nil {
			return false, object.Err
		}
		if object.Key <= last {
			return false, errOrder
		}
		last = object.Key
		key, ok := strings.CutSuffix(strings.TrimPrefix(last, b.prefix), end)
		if key >= to {
			break
		}
		if ok {
			found(key, nil)
			most--
		}
		if most == 0 {
			return true, nil // more may follow, which would take a request to know
		}
	}
	return false, ctx.Err() // which ends the iteration without an error
}

// ready fetches the credentials if there are none or they have expired: the driver would send without. That there are
// none may pass, as what gives a role may be away for a moment.
func (b *bucket) ready() error {
	value, err := b.client.GetCreds()
	if err == nil && value.SecretAccessKey == "" {
		err = errLogin
	}
	return err
}

// risks names rules that delete the cells, and versions that none deletes. Without a right to ask, or on a
// server that does not know the question, there is no answer.
func (b *bucket) risks(ctx context.Context) (risks []string) {
	kept := true
	if rules, err := b.client.GetBucketLifecycle(ctx, b.name); err == nil {
		for _, rule := range rules.Rules {
			prefix := cmp.Or(rule.RuleFilter.Prefix, rule.RuleFilter.And.Prefix, rule.Prefix)
			deletes := !rule.Expiration.IsDaysNull() || !rule.Expiration.IsDateNull()
			above := strings.HasPrefix(b.prefix, prefix)
			if deletes && rule.Status == "Enabled" && (above || strings.HasPrefix(prefix, b.prefix)) {
				risks = append(risks, fmt.Sprintf("the lifecycle rule %q of the bucket deletes objects below %q: leave %s out of it", rule.ID, prefix, b.prefix))
			}
			kept = kept && !(above && rule.Status == "Enabled" && !rule.NoncurrentVersionExpiration.IsDaysNull())
		}
	}
	if is, err := b.client.GetBucketVersioning(ctx, b.name); err == nil && is.Enabled() && kept {
		risks = append(risks, fmt.Sprintf("the bucket is versioned: each write below %s is kept, and a tool that restores old versions takes cells back: let a lifecycle rule expire noncurrent versions", b.prefix))
	}
	return risks
}

var (
	errRights      = stores.Permanent.New("the server refuses a right: grant the rights that the package doc names")
	errCredentials = stores.Permanent.New("the server refuses the credentials: fix or renew them")
	errRegion      = stores.Permanent.New("the bucket is in another region: name it by region=")
	errOrder       = stores.Permanent.New("the bucket lists its objects in no order: take a general-purpose bucket")
	errLogin       = stores.Transient.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine or the pod a role")
	errSlow        = stores.Transient.New("the server cannot answer now")
	errOther       = stores.Permanent.New("the server speaks no S3: fix the endpoint")

	// advice has what to do against refusals of the server, by their codes.
	advice = map[string]error{
		"InvalidAccessKeyId":           errCredentials,
		"SignatureDoesNotMatch":        errCredentials,
		"ExpiredToken":                 errCredentials,
		"InvalidToken":                 errCredentials,
		"NoSuchBucket":                 stores.Permanent.New("there is no such bucket: make it, or fix the URL"),
		"AuthorizationHeaderMalformed": errRegion,
		"RequestTimeTooSkewed":         stores.Permanent.New("the clock of this machine is too far from the server's, which signatures depend on: set the clock"),
	}
)

// explain gives the server's answer its kind.
func (b *bucket) explain(err error) error {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	kind, code := advice[answer.Code], answer.StatusCode
	if kind == errCredentials {
		b.creds.Expire() // so that those that were renewed meanwhile are read
	}
	switch {
	case answer.Code == "NotImplemented":
		return fmt.Errorf("%w: %w", engine.ErrIgnores, err)
	case errors.Is(err, engine.ErrRaces):
		return fmt.Errorf("%w; then delete the object %s, by which all processes refuse this one, and run tickflake store check", err, b.prefix+engine.Mark+end)
	case kind != nil:
	case code == http.StatusNotFound && !errors.Is(err, stores.ErrConflict), code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		return fmt.Errorf("%w: %s", errOther, answer.Code) // err may have a page of HTML
	case code == http.StatusTooManyRequests, code == http.StatusConflict && !errors.Is(err, engine.ErrBusy), code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s", errSlow, answer.Code)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		kind = errRights
	case code == http.StatusMovedPermanently:
		kind = errRegion
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}
