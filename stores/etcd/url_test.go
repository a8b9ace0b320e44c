package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	for rawURL, want := range map[string]string{
		"nats://u:SECRET@h":             "store URL: unknown scheme, want etcd:// or etcds://",
		"etcd://u:SECRET@h/path":        "a path after the host",
		"etcd://u@h":                    "a user without a password, or",
		"etcd://:SECRET@h":              "a user without a password, or",
		"etcd://u:SECRET@h?x=SECRET":    "there are namespace, cacert, cert, key",
		"etcd://u:SECRET@h?cert=/none":  "needs the scheme etcds://",
		"etcds://u:SECRET@h?cert=/none": "options cert and key",
	} {
		_, err := Open(limited(t), rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		if !ok || !strings.Contains(bad.Error(), want) || strings.Contains(fmt.Sprintf("%v %#v", bad, bad), "SECRET") {
			t.Errorf("Open(%q): %v; want %q", rawURL, err, want)
		}
	}
	_, err := Open(limited(t), "etcd://u:SECRET@h?namespace=a/b")
	if err == nil || !strings.Contains(err.Error(), "namespace \"a/b\"") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open with a bad namespace: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	if _, err := New(nil, "x"); err == nil {
		t.Error("New took nil")
	}
	if _, err := New(nil, "a/b"); err == nil {
		t.Errorf("New with a bad namespace: %v", err)
	}
	// Nothing listens there, and nothing is asked.
	s := openOffline(t)
	for _, key := range []string{"", "A", "a//b"} {
		if _, err := s.Read(limited(t), key); err == nil || !strings.Contains(err.Error(), "etcd at 127.0.0.1:1: read "+key) {
			t.Errorf("Read(%q): %v", key, err)
		}
		if _, err := swapCell(limited(t), s, stores.Cell{Key: key}, nil); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap(%q): %v", key, err)
		}
	}
}

// The message says what was asked, and why nobody answered.
func TestDownIsNamed(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:1", "localhost:2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the test has ended
	given, err := New(client, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{given, openURL(t, "etcd://127.0.0.1:1,localhost:2"), openURL(t, "etcds://127.0.0.1:1,localhost:2")} {
		for op, do := range map[string]func(context.Context) error{
			"list cells": func(ctx context.Context) error { _, err := s.List(ctx, "", "\x7f", 1<<30); return err },
			"swap a":     func(ctx context.Context) error { _, err := swapCell(ctx, s, stores.Cell{Key: "a"}, nil); return err },
		} {
			err := servertest.Refused(t, do)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			for _, want := range []string{"etcd at 127.0.0.1:1,localhost:2: " + op, "refused"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		}
	}
	err = servertest.Refused(t, func(ctx context.Context) error { _, err := Open(ctx, "etcd://u:SECRET@127.0.0.1:1"); return err })
	if err == nil || !strings.Contains(err.Error(), "etcd at 127.0.0.1:1: open: ") || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("Open: %v", err)
	}
}
