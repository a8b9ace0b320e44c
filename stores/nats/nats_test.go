package nats

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestStore(t *testing.T) {
	_, addr := startServer(t)
	t.Run("Open", func(t *testing.T) {
		open := func(t testing.TB, namespace string) stores.Store { return openStore(t, addr, namespace) }
		storetest.TestStore(t, open)
		sequencetest.TestSequences(t, open)
	})
	t.Run("New", func(t *testing.T) {
		client := newClient(t, addr)
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			s, err := New(client, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
}

// damage returns the function of a Server that damages cells.
func damage(addr string) func(t testing.TB, namespace, key, text string) {
	return func(t testing.TB, namespace, key, text string) {
		kv, err := newClient(t, addr).KeyValue(limited(t), namespace)
		if err == nil {
			_, err = kv.Put(limited(t), toSubject.Replace(key), []byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestServer(t *testing.T) {
	server, addr := startServer(t)
	storetest.TestServer(t, storetest.Server{Addr: addr, Open: openStore, Damage: damage(addr), Kill: server.Kill, Start: server.Start})
}

func TestServerNew(t *testing.T) {
	server, addr := startServer(t)
	storetest.TestServer(t, storetest.Server{
		Addr: addr, Damage: damage(addr), Kill: server.Kill, Start: server.Start,
		Open: func(t testing.TB, addr, namespace string) stores.Store {
			s, err := New(newClient(t, addr), namespace)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

// Three servers, with clients of each.
func TestCluster(t *testing.T) {
	t.Parallel()
	processes, addrs := startCluster(t)
	n := 0
	open := func(t testing.TB, namespace string) stores.Store {
		n++
		return openStore(t, addrs[n%3], namespace)
	}
	t.Run("replicas", func(t *testing.T) {
		s := open(t, "replicas").(*Store)
		if _, err := swapCell(limited(t), s, stores.Cell{Key: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		if s.bucket.replicas != 3 {
			t.Errorf("the bucket has %d replicas", s.bucket.replicas)
		}
	})
	storetest.TestStore(t, open)
	t.Run("killed", func(t *testing.T) {
		s := openURL(t, "nats://"+strings.Join(addrs, ",")+"?namespace=killed")
		cell, err := swapCell(limited(t), s, stores.Cell{Key: "node/0000001"}, []byte("0"))
		if err != nil {
			t.Fatal(err)
		}
		for i, process := range processes {
			if err := process.Kill(); err != nil {
				t.Fatal(err)
			}
			is := eventually(t, func(ctx context.Context) (stores.Cell, error) { return s.Read(ctx, "node/0000001") })
			if is.Version != cell.Version {
				t.Fatalf("after %d kills the cell is %v, want %v", i+1, is, cell)
			}
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			cell = eventually(t, func(ctx context.Context) (stores.Cell, error) {
				is, err := s.Read(ctx, "node/0000001")
				if err != nil {
					return is, err
				}
				return swapCell(ctx, s, is, []byte{'1' + byte(i)})
			})
		}
	})
}

func eventually(t *testing.T, f func(context.Context) (stores.Cell, error)) stores.Cell {
	t.Helper()
	for begin := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		cell, err := f(ctx)
		cancel()
		if err == nil {
			return cell
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("not even after a minute: %v", err)
		}
	}
}

// A leader that does not know the latest write must not answer a Read. Here get
// answers before a Swap.
func TestConfirm(t *testing.T) {
	_, addr := startServer(t)
	s, ctx := openStore(t, addr, "confirm").(*Store), limited(t)
	first, err := swapCell(ctx, s, stores.Cell{Key: "a"}, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	revision := func() uint64 {
		entry, err := s.bucket.get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		return entry.revision
	}
	before := revision()
	s.bucket.replicas = 3
	if err := s.bucket.confirm(ctx, "a", before); err != nil {
		t.Errorf("confirm of the latest: %v", err)
	}
	if err := s.bucket.confirm(ctx, "b", 0); err != nil {
		t.Errorf("confirm of none: %v", err)
	}
	second, err := swapCell(ctx, s, first, []byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []uint64{0, before, revision() + 1} {
		if err := s.bucket.confirm(ctx, "a", old); !isConflict(err) {
			t.Errorf("confirm of revision %d: %v, want a conflict", old, err)
		}
	}
	if is, err := s.Read(ctx, "a"); err != nil || is.Version != second.Version {
		t.Errorf("Read: %v, %v", is, err)
	}
	if list, err := s.List(ctx, "", "\x7f", 9); err != nil || len(list) != 1 {
		t.Errorf("List: %v, %v; want the cell alone", list, err)
	}
}

// A restored bucket takes revisions back. A cell that was written again since then may
// have the revision of a lost write, and its version is another.
func TestRevisionsThatRecur(t *testing.T) {
	_, addr := startServer(t)
	old, s, ctx := openStore(t, addr, "before").(*Store), openStore(t, addr, "restored").(*Store), limited(t)
	lost, err := swapCell(ctx, old, stores.Cell{Key: "a"}, []byte("lost"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := swapCell(ctx, s, stores.Cell{Key: "a"}, []byte("other")); err != nil {
		t.Fatal(err)
	}
	a, err1 := old.bucket.get(ctx, "a")
	b, err2 := s.bucket.get(ctx, "a")
	if err1 != nil || err2 != nil || a.revision != b.revision {
		t.Fatalf("revisions %d and %d, want the same", a.revision, b.revision)
	}
	if _, err := swapCell(ctx, s, lost, []byte("blind")); !errors.Is(err, stores.ErrConflict) {
		t.Errorf("Swap at the version of a lost write: %v, want a conflict", err)
	}
}

// A List of one first part asks for no others.
func TestFilter(t *testing.T) {
	for _, c := range [][3]string{
		{"node/", "node0", "node.>"}, {"node/5", "node/7", "node.>"}, {"a.b/", "a.b0", "a=b.>"}, {"node/", "node1", ">"},
		{"", "\x7f", ">"}, {"node", "node0", ">"}, {"/", "0", ">"}, {"A/", "A0", ">"},
	} {
		if got := filter(c[0], c[1]); got != c[2] {
			t.Errorf("filter(%q, %q) is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// A key that was deleted, also with its bucket, has no version of before.
func TestDeleted(t *testing.T) {
	_, addr := startServer(t)
	kvs := newClient(t, addr)
	for name, remove := range map[string]func(jetstream.KeyValue, context.Context) error{
		"delete": func(kv jetstream.KeyValue, ctx context.Context) error { return kv.Delete(ctx, "node.0000005") },
		"purge":  func(kv jetstream.KeyValue, ctx context.Context) error { return kv.Purge(ctx, "node.0000005") },
		"bucket": func(kv jetstream.KeyValue, ctx context.Context) error { return kvs.DeleteKeyValue(ctx, kv.Bucket()) },
	} {
		s, ctx := openStore(t, addr, name), limited(t)
		first, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		kv, err := kvs.KeyValue(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := remove(kv, ctx); err != nil {
			t.Fatal(err)
		}
		if cell, err := s.Read(ctx, "node/0000005"); err != nil || cell.Version != 0 {
			t.Errorf("%s: Read: %v, %v", name, cell, err)
		}
		if list, err := s.List(ctx, "", "\x7f", 1<<30); err != nil || len(list) != 0 {
			t.Errorf("%s: List: %v, %v", name, list, err)
		}
		if _, err := swapCell(ctx, s, first, []byte("late")); !errors.Is(err, stores.ErrConflict) {
			t.Errorf("%s: Swap: %v, want a conflict", name, err)
		}
		again, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("again"))
		if err != nil || again.Version == first.Version {
			t.Errorf("%s: Swap of none: %v, %v", name, again, err)
		}
		if _, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("twice")); !errors.Is(err, stores.ErrConflict) {
			t.Errorf("%s: Swap of none: %v, want a conflict", name, err)
		}
	}
}

// Buckets that would lose cells, or show old ones, are refused and left alone.
func TestUnfitBucket(t *testing.T) {
	_, addr := startServer(t)
	client := newClient(t, addr)
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"memory":  func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"history": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"age":     func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"count":   func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 10, jetstream.DiscardOld },
		"bytes":   func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1000, jetstream.DiscardOld },
		"direct":  func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"work":    func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"async":   func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"noack":   func(c *jetstream.StreamConfig) { c.NoAck = true },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := limited(t)
			config := (&Store{client: client, namespace: name}).config()
			change(&config)
			made, err := client.CreateStream(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			s := openStore(t, addr, name)
			_, err1 := s.List(ctx, "", "\x7f", 1<<30)
			_, err2 := s.Read(ctx, "node/0000001")
			_, err3 := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, nil)
			for _, err := range []error{err1, err2, err3} {
				if !errors.Is(err, ErrBucket) {
					t.Errorf("%v, want one that wraps ErrBucket", err)
				}
			}
			if _, err := stores.Open(ctx, "nats://"+addr+"?namespace="+name); !errors.Is(err, stores.ErrForgets) {
				t.Errorf("stores.Open: %v, want one that wraps stores.ErrForgets", err)
			}
			if info, err := made.Info(ctx); err != nil || info.State.Msgs != 0 {
				t.Errorf("the bucket has changed: %v, %v", info, err)
			}
		})
	}
	t.Run("kv add", func(t *testing.T) {
		if _, err := client.CreateKeyValue(limited(t), jetstream.KeyValueConfig{Bucket: "added"}); err != nil {
			t.Fatal(err)
		}
		if _, err := openStore(t, addr, "added").List(limited(t), "", "\x7f", 1<<30); !errors.Is(err, ErrBucket) {
			t.Errorf("%v, want one that wraps ErrBucket", err)
		}
	})
	t.Run("fit", func(t *testing.T) {
		config := (&Store{client: client, namespace: "fit"}).config()
		config.MaxBytes, config.Description = 1<<20, "made by hand"
		if _, err := client.CreateStream(limited(t), config); err != nil {
			t.Fatal(err)
		}
		if _, err := swapCell(limited(t), openStore(t, addr, "fit"), stores.Cell{Key: "node/0000001"}, nil); err != nil {
			t.Error(err)
		}
	})
}

// The rights in the package's doc are enough, and needed.
func TestRights(t *testing.T) {
	_, addr := startServer(t, userEnv+"=flake:p@ss/wo:rd%?#")
	url := "nats://flake:p%40ss%2Fwo%3Ard%25%3F%23@" + addr
	s, ctx := openURL(t, url+"?namespace=fleet"), limited(t)
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	if is, err := s.Read(ctx, "node/0000001"); err != nil || is.Version != cell.Version {
		t.Errorf("Read: %v, %v", is, err)
	}
	if list, err := s.List(ctx, "", "\x7f", 1<<30); err != nil || len(list) != 1 {
		t.Errorf("List: %v, %v", list, err)
	}
	other := openURL(t, url+"?namespace=other")
	brief, cancel := context.WithTimeout(ctx, 5*time.Second) // it is not answered
	defer cancel()
	if _, err := swapCell(brief, other, cell, nil); !errors.Is(err, natsgo.ErrPermissionViolation) || errors.Is(err, stores.ErrConflict) {
		t.Errorf("Swap without the right: %v", err)
	}
	_, err = Open(ctx, "nats://flake:wrong-secret@"+addr)
	if !errors.Is(err, stores.ErrRefused) || !strings.Contains(err.Error(), "nats at "+addr+": open: ") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("Open with a wrong password: %v", err)
	}
}

func BenchmarkSwap(b *testing.B) {
	_, addr := startServer(b)
	s, ctx := openStore(b, addr, "bench"), context.Background()
	cell := stores.Cell{Key: "node/0000001"}
	for b.Loop() {
		var err error
		if cell, err = swapCell(ctx, s, cell, []byte("value")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	_, addr := startServer(b)
	s, ctx := openStore(b, addr, "bench"), context.Background()
	if _, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("value")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Read(ctx, "node/0000001"); err != nil {
			b.Fatal(err)
		}
	}
}
