//go:build unix

package engines

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	_ "github.com/tickflake/tickflake/stores/s3"
)

func init() {
	_ = os.Setenv("AWS_ACCESS_KEY_ID", servers.S3User)
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", servers.S3Secret)
}

func TestS3(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.S3)
	client, err := minio.New(s.Addr, &minio.Options{Creds: credentials.NewStaticV4(servers.S3User, servers.S3Secret, "")})
	require.NoError(t, err)
	e := Engine{
		Name: "s3 at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := client.PutObject(Within(t), servers.S3Bucket, namespace+"/"+key+"!", strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
			require.NoError(t, err)
		},
		Delete: map[string]func(testing.TB, string, string){"deleted": func(t testing.TB, namespace, key string) {
			require.NoError(t, client.RemoveObject(Within(t), servers.S3Bucket, namespace+"/"+key+"!", minio.RemoveObjectOptions{}))
		}},
		TLS:    func(url string) string { return strings.Replace(url, "http:", "https:", 1) },
		HTTP:   HTTP{Conflict: http.StatusPreconditionFailed, Busy: http.StatusConflict},
		AtRest: 8, AtMost: 20,
	}
	e.Test(t)
	t.Run("requests", func(t *testing.T) { testS3Requests(t, s) })
	testAlone(t, s, map[string][2]func() error{"killed": {s.Kill, s.Start}, "stopped": {s.Suspend, s.Resume}})
	bucket := s.Dir + "/data/" + servers.S3Bucket
	refusal := func(advice string, reads bool, refuse, fix func() error) func(*testing.T) Refusal {
		return func(t *testing.T) Refusal {
			return Refusal{Store: e.Open(t, s.Addr, "refused"), Advice: advice, Reads: reads,
				Refuse: func() { require.NoError(t, refuse()) }, Fix: func() { require.NoError(t, fix()) }}
		}
	}
	testRefusals(t, map[string]func(*testing.T) Refusal{
		"bucket": refusal("make it", true, func() error { return os.Rename(bucket, bucket+"2") }, func() error { return os.Rename(bucket+"2", bucket) }),
		"rights": refusal("grant the rights", false, func() error { return s.S3ReadOnly(true) }, func() error { return s.S3ReadOnly(false) }),
	})
}

// Two gateways, neither of which sees what the other has under way, are found at the first claim, and refused from then on, also
// by who opens the store later.
func TestS3Races(t *testing.T) {
	t.Parallel()
	one := servers.For(t, servers.S3)
	forwards := []http.Handler{Forward(one), Forward(servers.For(t, servers.S3, one.S3Other()))}
	var requests, failing atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if failing.Load() > 0 && n%failing.Load() == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		forwards[n%int64(len(forwards))].ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	claim := func(namespace string) error {
		store, err := stores.Open(Within(t), one.At(proxy.Listener.Addr().String(), "namespace="+namespace))
		if err != nil {
			return err
		}
		defer store.Close()
		k, err := lease.Claim(new(seam.Poller).In(Within(t)), store)
		if err == nil {
			_ = k.Close() // it may fail, too
		}
		return err
	}
	var namespace string
	var err error
	for probes := 0; err == nil; probes++ { // on a busy machine writes that should race often come one after the other
		require.Less(t, probes, 20)
		namespace = fmt.Sprint("probe", probes)
		err = claim(namespace)
	}
	for range 2 {
		require.ErrorIs(t, err, engine.ErrRaces)
		require.ErrorContains(t, err, "then delete the object "+namespace+"/REFUSED!")
		err = claim(namespace)
	}
	require.NoError(t, os.Remove(one.Dir+"/data/"+servers.S3Bucket+"/"+namespace+"/REFUSED!"))
	forwards = forwards[:1] // repaired
	require.NoError(t, claim(namespace))
	failing.Store(17) // as a proxy under load
	require.NoError(t, claim("new"))
}

// testS3Requests counts the requests that the package's doc tells, since each costs money.
func testS3Requests(t *testing.T, s *servers.Server) {
	var count atomic.Int64
	forward := Forward(s)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close) // after all releases
	costs := func(what string, least, most int64, f func()) {
		count.Store(0)
		f()
		assert.True(t, count.Load() >= least && count.Load() <= most, "%s: %d requests, want %d to %d", what, count.Load(), least, most)
	}
	var store stores.Store
	costs("open", 6, 6, func() { store = Open(t, s.At(proxy.Listener.Addr().String(), "namespace=requests")) })
	layout := snowflake.Default()
	layout.NodeBits, layout.Name, layout.Parts = 5, "", nil
	clock := clocktest.NewVirtual(time.Now())
	var poller seam.Poller // of the last
	claim := func() (k *lease.Keeper) {
		k, err := lease.Claim(poller.In(Within(t)), store, lease.WithLayout(layout), lease.WithClock(clock))
		require.NoError(t, err)
		t.Cleanup(func() { _ = k.Close() })
		return k
	}
	var last *lease.Keeper
	costs("first claim", 820, 850, func() { last = claim() })
	costs("claim", 4, 7, func() { last = claim() })
	for range 28 {
		last = claim()
	}
	costs("claim of the last but one", 6, 40, func() { last = claim() })
	require.Equal(t, 5*time.Minute, store.Traits().Window)
	clock.Advance(101 * time.Second) // more than a third of the window
	costs("extension", 2, 2, func() { _, _ = poller.Poll(t.Context()) })
	costs("release", 2, 2, func() { require.NoError(t, last.Close()) })
}
