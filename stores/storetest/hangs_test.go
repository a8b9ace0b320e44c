package storetest_test

import (
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestHangingServers puts a server through TestHangs: a good one, or in a child process of
// TestHangsAreCaught, one with a client that is broken.
func TestHangingServers(t *testing.T) {
	s := newFakeServer(t)
	how := os.Getenv(brokenEnv)
	hurry(how)
	open := func(ctx context.Context, url string) (stores.Store, error) {
		_, rest, _ := strings.Cut(url, "://")
		addr, namespace, _ := strings.Cut(rest, "/")
		c := &fakeClient{
			addr: addr, namespace: namespace,
			patient: how == "patient", hopeful: how == "hopeful", left: how == "left", dwells: how == "dwells", hasty: how == "hasty", unlucky: how == "", runs: how == "runs",
		}
		if how == "gives up" {
			if _, err := c.Read(ctx, "a"); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
	stores.Register("fake", open)
	stores.Register("fakes", open)
	storetest.TestHangs(t, storetest.Hangs{
		Addr:    s.addr,
		URL:     func(addr, namespace string) string { return "fake://" + addr + "/" + namespace },
		TLS:     func(addr, namespace string) string { return "fakes://" + addr + "/" + namespace },
		Suspend: s.suspend, Resume: s.resume,
	})
}

func TestHangsAreCaught(t *testing.T) {
	for how, by := range map[string]string{
		"patient":  "calls",
		"hopeful":  "calls",
		"dwells":   "calls",
		"gives up": "calls",
		"hasty":    "calls",
		"left":     "",
		"runs":     "",
	} {
		t.Run(how, func(t *testing.T) { caught(t, "TestHangingServers", how, by) })
	}
}

// TestHangs calls everything that has a context, but for what a store behind a network does not have, locks and a
// private place, and for probes: a probe needs a server that answers.
func TestHangsCallsEveryMethod(t *testing.T) {
	called := append(storetest.Methods(), "TryLock", "Private", "Probe")
	check := func(name string, of reflect.Type) {
		if of.Kind() == reflect.Func && of.NumIn() > 0 && of.In(0) == reflect.TypeFor[context.Context]() && !slices.Contains(called, name) {
			t.Errorf("TestHangs does not call %s", name)
		}
	}
	for m := range reflect.TypeFor[stores.Store]().Methods() {
		check(m.Name, m.Type)
	}
	for f := range reflect.TypeFor[stores.Traits]().Fields() {
		check(f.Name, f.Type)
	}
}
