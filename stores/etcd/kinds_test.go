package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tickflake/tickflake/stores"
)

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	process, addr := startServer(t)
	ctx := limited(t)
	root := newClient(t, addr)
	defer root.Close() //nolint:errcheck // the test has ended
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"root", "flake"} {
		must(root.UserAdd(ctx, user, "secret"))
	}
	must(root.UserGrantRole(ctx, "root", "root"))
	grant := func() {
		t.Helper()
		must(root.RoleGrantPermission(ctx, "cells", "/fleet/", clientv3.GetPrefixRangeEnd("/fleet/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	}
	must(root.RoleAdd(ctx, "cells"))
	grant()
	must(root.UserGrantRole(ctx, "flake", "cells"))
	must(root.AuthEnable(ctx))
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Username: "root", Password: "secret"})
	must(nil, err)
	defer admin.Close() //nolint:errcheck // the test has ended
	root = admin

	s := openURL(t, "etcd://flake:secret@"+addr+"?namespace=fleet")
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, nil)
	must(nil, err)
	for name, test := range map[string]struct{ refuse, fix func() }{
		"right": {func() {
			must(root.RoleRevokePermission(ctx, "cells", "/fleet/", clientv3.GetPrefixRangeEnd("/fleet/")))
		}, grant},
		"password": {func() { must(root.UserChangePassword(ctx, "flake", "other")) },
			func() { must(root.UserChangePassword(ctx, "flake", "secret")) }},
		"user": {func() { must(root.UserDelete(ctx, "flake")) },
			func() {
				must(root.UserAdd(ctx, "flake", "secret"))
				must(root.UserGrantRole(ctx, "flake", "cells"))
			}},
	} {
		test.refuse()
		_, err1 := s.Read(ctx, "node/0000001")
		_, err2 := swapCell(ctx, s, cell, nil)
		_, err3 := s.List(ctx, "", "\x7f", 9)
		for _, err := range []error{err1, err2, err3} {
			if stores.KindOf(err) != stores.Refused || !strings.Contains(err.Error(), "fix the URL") {
				t.Errorf("%s: %v, kind %v", name, err, stores.KindOf(err))
			}
		}
		test.fix()
		for {
			next, err := swapCell(ctx, s, cell, nil)
			if err == nil {
				cell = next
				break
			}
			// The driver gets a new token after a write that was refused for the old one.
			if ctx.Err() != nil || stores.KindOf(err) != stores.Passing {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := s.Read(brief, "node/0000001"); err == nil || stores.KindOf(err) != stores.Passing {
		t.Errorf("without a server: %v, kind %v", err, stores.KindOf(err))
	}
}
