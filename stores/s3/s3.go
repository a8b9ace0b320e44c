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
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

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
