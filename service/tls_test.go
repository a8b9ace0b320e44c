package service_test

import (
	"crypto/tls"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
)

// New files are read within a second. Files that do not fit leave the old certificate, and are
// logged once. servicetest shakes hands with the result.
func TestReloadTLS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, l, files := servicetest.NewAuthority(t), &logs{}, servicetest.NewFiles(t)
		var c *tls.Config
		name := func() string {
			certificate, err := c.GetCertificate(nil)
			require.NoError(t, err)
			return certificate.Leaf.Subject.CommonName
		}
		first, firstKey := a.Issue(t, "first", servicetest.ForServers, time.Hour)
		second, secondKey := a.Issue(t, "second", servicetest.ForServers, 24*time.Hour)
		files.Put(t, first, firstKey, nil)
		var err error
		c, err = service.ReloadTLS(files.Cert, files.Key, "", l.logger())
		require.NoError(t, err)
		assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)
		files.Put(t, append([]byte("\ufeff"), second...), secondKey, nil) // as editors of Windows write it
		assert.Equal(t, "first", name(), "not read again within a second")
		time.Sleep(time.Second)
		assert.Equal(t, "second", name())
		assert.Contains(t, l.String(), "TLS files were read again")

		for i, bad := range []func(){
			func() { files.Put(t, first, secondKey, nil) },
			func() { files.Put(t, first[:100], firstKey, nil) },
			func() { files.Put(t, nil, nil, nil) },
			func() { require.NoError(t, os.Remove(files.Cert)) },
		} {
			bad()
			for range 5 {
				time.Sleep(time.Second)
				assert.Equal(t, "second", name())
			}
			assert.Len(t, lines(l.String(), "new TLS files cannot be used"), i+1)
		}
		files.Put(t, first, firstKey, nil)
		time.Sleep(time.Second)
		assert.Equal(t, "first", name())
		time.Sleep(time.Hour)
		files.Put(t, first, append(firstKey, '\n'), nil)
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
		_, err := service.ReloadTLS(files.Cert, files.Key, files.ClientCA, nil)
		require.ErrorContains(t, err, c.want, name)
		assert.NotContains(t, err.Error(), string(c.key))
	}
	files := servicetest.NewFiles(t)
	_, err := service.ReloadTLS(files.Cert, files.Key, "", nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
