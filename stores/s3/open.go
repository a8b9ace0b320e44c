package s3

import (
	"cmp"
	"context"
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
