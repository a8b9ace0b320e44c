package nats

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
)

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "user")
	user := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	user("flake:secret")
	process, addr := startServer(t, userFileEnv+"="+file)
	ctx := limited(t)
	s := openURL(t, "nats://flake:secret@"+addr+"?namespace=fleet")
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	restart := func(text string) {
		t.Helper()
		user(text)
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
	}
	attempt := func() error {
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		next, err := swapCell(brief, s, cell, nil)
		if err == nil {
			cell = next
		}
		return err
	}
	until := func(good func(error) bool) {
		t.Helper()
		for !good(attempt()) {
			if ctx.Err() != nil {
				t.Fatalf("at last: %v", attempt())
			}
		}
	}
	isRefused := func(err error) bool { return stores.KindOf(err) == stores.Refused }
	works := func(err error) bool { return err == nil }
	restart("flake:other")
	until(isRefused)
	// By itself the driver gives the connection up at the second refusal, a quarter of a second
	// after the first.
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if s.client.Conn().IsClosed() {
			t.Fatal("the connection has ended for good")
		}
	}
	restart("flake:secret")
	until(works)
	restart("flake:secret:nothing")
	until(isRefused)
	if err := attempt(); !strings.Contains(err.Error(), "grant the rights") {
		t.Error(err)
	}
	restart("flake:secret")
	until(works)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := attempt(); err == nil || stores.KindOf(err) != stores.Passing {
		t.Errorf("without a server: %v", err)
	}
	until(func(err error) bool {
		return strings.Contains(err.Error(), "nats at "+addr+": swap node/0000001") && strings.Contains(err.Error(), "connection refused")
	})
}

// A stream of another program has the name of the bucket.
func TestForeignStream(t *testing.T) {
	_, addr := startServer(t)
	_, err := newClient(t, addr).CreateStream(limited(t), jetstream.StreamConfig{Name: "KV_foreign", Subjects: []string{"foreign"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = openStore(t, addr, "foreign").Read(limited(t), "node/0000001")
	if stores.KindOf(err) != stores.Refused || !strings.Contains(err.Error(), "take another namespace") {
		t.Errorf("%v, kind %v", err, stores.KindOf(err))
	}
}
