package service_test

import (
	"crypto/tls"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
)

// New files are in use within five seconds, and at once at a signal. Files that do not fit leave the old certificate, and are
// logged once. servicetest shakes hands with the result.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, l, paths, all := servicetest.NewAuthority(t), &logs{}, servicetest.NewFiles(t), service.NewFiles()
		var c *tls.Config
		name := func() string {
			certificate, err := c.GetCertificate(nil)
			require.NoError(t, err)
			return certificate.Leaf.Subject.CommonName
		}
		first, firstKey := a.Issue(t, "first", servicetest.ForServers, time.Hour)
		second, secondKey := a.Issue(t, "second", servicetest.ForServers, 24*time.Hour)
		paths.Put(t, first, firstKey, nil)
		var err error
		c, err = all.TLS(t.Context(), paths.Cert, paths.Key, "", l.logger())
		require.NoError(t, err)
		assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)
		signals := make(chan os.Signal)
		go all.Follow(t.Context(), signals)
		paths.Put(t, append([]byte("\ufeff"), second...), secondKey, nil) // as editors of Windows write it
		time.Sleep(5 * time.Second)
		assert.Equal(t, "second", name())
		assert.Contains(t, l.String(), "TLS files were read again")

		for i, bad := range []func(){
			func() { paths.Put(t, first, secondKey, nil) },
			func() { paths.Put(t, first[:100], firstKey, nil) },
			func() { paths.Put(t, nil, nil, nil) },
			func() { require.NoError(t, os.Remove(paths.Cert)) },
		} {
			bad()
			time.Sleep(20 * time.Second)
			assert.Equal(t, "second", name())
			assert.Len(t, lines(l.String(), "new TLS files cannot be used"), i+1)
		}
		paths.Put(t, first, firstKey, nil)
		signals <- syscall.SIGHUP
		signals <- syscall.SIGHUP // the first was seen to
		assert.Equal(t, "first", name())
		time.Sleep(time.Hour)
		paths.Put(t, first, append(firstKey, '\n'), nil)
		time.Sleep(5 * time.Second)
		assert.Equal(t, "first", name(), "an expired one is better than none")
		assert.Contains(t, l.String(), "has expired at")
	})
}

func TestReloadTLSRefuses(t *testing.T) {
	t.Parallel()
	a := servicetest.NewAuthority(t)
	good, key := a.Issue(t, "good", servicetest.ForServers, time.Hour)
	old, oldKey := a.Issue(t, "old", servicetest.ForServers, -time.Minute)
	for name, c := range map[string]struct {
		certificate, key, ca []byte
		want                 string
	}{
		"expired":   {old, oldKey, a.PEM(), "expired"},
		"other key": {good, oldKey, a.PEM(), "tls.key"},
		"no CA":     {good, key, []byte("nothing"), "ca.crt: there is no certificate of an authority"},
	} {
		files := servicetest.NewFiles(t)
		files.Put(t, c.certificate, c.key, c.ca)
		_, err := service.NewFiles().TLS(t.Context(), files.Cert, files.Key, files.ClientCA, nil)
		require.ErrorContains(t, err, c.want, name)
		assert.NotContains(t, err.Error(), string(c.key))
	}
	files := servicetest.NewFiles(t)
	_, err := service.NewFiles().TLS(t.Context(), files.Cert, files.Key, "", nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
