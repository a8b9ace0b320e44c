package zookeeper

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/stores"
)

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	process, addr := startServer(t)
	ctx := limited(t)
	conn := newConn(t, addr)
	s := openURL(t, "zk://"+addr+"?namespace=fleet")
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rights := func(acl []zk.ACL) {
		t.Helper()
		for _, path := range []string{"/fleet", "/fleet/node+0000001"} {
			if _, err := conn.SetACL(path, acl, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused := func(name, advice string, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if stores.KindOf(err) != stores.Refused || !strings.Contains(err.Error(), advice) || errors.Is(err, stores.ErrConflict) {
				t.Errorf("%s: %v, kind %v", name, err, stores.KindOf(err))
			}
		}
	}
	rights(zk.WorldACL(zk.PermAdmin))
	_, err1 := s.Read(ctx, "node/0000001")
	_, err2 := swapCell(ctx, s, cell, nil)
	_, err3 := s.List(ctx, "", "\x7f", 9)
	_, err4 := swapCell(ctx, s, stores.Cell{Key: "node/0000002"}, nil)
	refused("rights", "access rights of the znodes", err1, err2, err3, err4)
	rights(zk.WorldACL(zk.PermAll))
	if _, err := swapCell(ctx, s, cell, nil); err != nil {
		t.Fatal(err)
	}

	if _, err := conn.Create("/other", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, err = swapCell(ctx, openURL(t, "zk://"+addr+"?namespace=other"), stores.Cell{Key: "node/0000001"}, nil)
	refused("ephemeral", "use another namespace", err)

	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ctx, "node/0000001"); err == nil || stores.KindOf(err) != stores.Passing {
		t.Errorf("without a server: %v, kind %v", err, stores.KindOf(err))
	}
}
