package engines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/etcd"
)

// etcdClient returns a client with the driver's default of 100 attempts.
func etcdClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.Etcd)
	Engine{
		Name: "etcd at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := etcdClient(t, s.Addr).Put(Within(t), "/"+namespace+"/"+key, text)
			require.NoError(t, err)
		},
		Delete: map[string]func(testing.TB, string, string){"deleted": func(t testing.TB, namespace, key string) {
			_, err := etcdClient(t, s.Addr).Delete(Within(t), "/"+namespace+"/"+key)
			require.NoError(t, err)
		}},
		TLS:    func(url string) string { return strings.Replace(url, "etcd://", "etcds://u:p@", 1) },
		AtRest: 1, AtMost: 5, // a closed connection counts for a moment
	}.Test(t)
}

// A server that is full answers reads, and refuses writes.
func TestEtcdFull(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.Etcd, "quota-backend-bytes: 262144")
	store, client := Open(t, s.URL), etcdClient(t, s.Addr)
	cell := Cell(t, store, "node/0000001", "v")
	require.Eventually(t, func() bool {
		_, err := client.Put(Within(t), "big", strings.Repeat("x", 100_000))
		return errors.Is(err, rpctypes.ErrNoSpace)
	}, Patience, time.Millisecond)
	_, err := store.Swap(Within(t), cell.Key, cell.Version, nil)
	require.ErrorIs(t, err, stores.Permanent)
	require.ErrorContains(t, err, "disarm its alarm")
}

// The rights in the package's doc are enough, and needed.
func TestEtcdRights(t *testing.T) {
	t.Parallel()
	const password, inURL = "p@ss/wo:rd%?#", "p%40ss%2Fwo%3Ard%25%3F%23"
	server, ctx := servers.For(t, servers.Etcd), t.Context()
	root := etcdClient(t, server.Addr)
	must := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	end := clientv3.GetPrefixRangeEnd("/fleet/")
	grant := func() {
		must(root.RoleGrantPermission(ctx, "cells", "/fleet/", end, clientv3.PermissionType(clientv3.PermReadWrite)))
	}
	add := func() {
		must(root.UserAdd(ctx, "flake", password))
		must(root.UserGrantRole(ctx, "flake", "cells"))
	}
	must(root.UserAdd(ctx, "root", password))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.RoleAdd(ctx, "cells"))
	grant()
	add()
	must(root.AuthEnable(ctx))
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr}, Username: "root", Password: password})
	require.NoError(t, err)
	defer root.Close() //nolint:errcheck // the test has ended
	url := "etcd://flake:" + inURL + "@" + server.Addr

	Works(t, Open(t, url+"?namespace=fleet"))
	at := "etcd at " + server.Addr
	testDenied(t, server, map[string]string{"etcd://" + server.Addr: at, url + "?namespace=other": at, "etcd://flake:wr0ng@" + server.Addr: at})
	refusal := func(refuse, fix func()) func(t *testing.T) Refusal {
		return func(t *testing.T) Refusal {
			return Refusal{Store: Open(t, url+"?namespace=fleet"), Refuse: refuse, Fix: fix, Advice: "fix the URL", Reads: true}
		}
	}
	testRefusals(t, map[string]func(t *testing.T) Refusal{
		"right": refusal(func() { must(root.RoleRevokePermission(ctx, "cells", "/fleet/", end)) }, grant),
		"password": refusal(func() { must(root.UserChangePassword(ctx, "flake", "other")) },
			func() { must(root.UserChangePassword(ctx, "flake", password)) }),
		"user": refusal(func() { must(root.UserDelete(ctx, "flake")) }, add),
	})
}

// With -long, a member that was killed is replaced by one with an empty directory, which the
// majority needs later.
func TestEtcdFailover(t *testing.T) {
	t.Parallel()
	c := StartTrio(t, servers.Etcd, func(i int, ports [6]int) []string {
		peer := func(j int) string { return fmt.Sprint("http://127.0.0.1:", ports[j]) }
		return []string{fmt.Sprint("name: m", i), "listen-peer-urls: " + peer(i), "initial-advertise-peer-urls: " + peer(i),
			fmt.Sprintf("initial-cluster: m0=%s,m1=%s,m2=%s", peer(0), peer(1), peer(2))}
	})
	c.Leader = func(ctx context.Context) (*servers.Server, error) {
		for _, m := range c.Members {
			status, err := etcdClient(t, m.Addr).Status(ctx, m.Addr)
			if err != nil {
				return nil, err
			}
			if status.Leader == status.Header.MemberId {
				return m, nil
			}
		}
		return nil, errors.New("no member says that it leads")
	}
	c.Replace = func(t testing.TB, killed *servers.Server) {
		for i, m := range c.Members {
			if m != killed {
				continue
			}
			peer := strings.TrimPrefix(c.Wanted[i].Settings[1], "listen-peer-urls: ")
			client := etcdClient(t, c.Members[(i+1)%3].Addr)
			list, err := client.MemberList(Within(t))
			require.NoError(t, err)
			for _, member := range list.Members {
				if member.PeerURLs[0] != peer {
					continue
				}
				// The cluster refuses both until its members have seen each other for some seconds.
				Until(t, func(context.Context) error {
					_, err := client.MemberRemove(Within(t), member.ID)
					return err
				})
				Until(t, func(context.Context) error {
					_, err := client.MemberAdd(Within(t), []string{peer})
					return err
				})
			}
			c.Wanted[i].Settings = append(c.Wanted[i].Settings, "initial-cluster-state: existing")
			c.Members[i] = servers.ForAll(t, c.Wanted[i])[0]
		}
	}
	c.Test(t)
}
