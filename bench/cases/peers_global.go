package cases

import (
	"context"
	"time"

	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/bench/results"
)

// global is a case of a generator that needs no setting up: its state is in package
// variables. Its loop calls it directly, and not through issue, as its users do.
func global(name string, bits int, loop Loop, issue func() (ID, error)) Case {
	return Case{Name: name, Group: results.Peers, Bits: bits, Open: func(context.Context) (Source, error) {
		return Source{Loop: func() Loop { return loop }, Issue: issue}, nil
	}}
}

// counter24 is a counter of 24 bits beside a time in seconds.
var counter24 = Limit{IDs: 1 << 24, Per: time.Second, Repeats: true}

// XID calls xid.New.
func XID() Case {
	c := global("rs/xid", 96, func(n int) error {
		for range n {
			xid.New()
		}
		return nil
	}, func() (ID, error) {
		id := xid.New()
		return idOf(id[:]), nil
	})
	c.Limit = counter24
	return c
}

// ObjectID calls bson.NewObjectID of MongoDB's driver.
func ObjectID() Case {
	c := global("MongoDB ObjectID", 96, func(n int) error {
		for range n {
			bson.NewObjectID()
		}
		return nil
	}, func() (ID, error) {
		id := bson.NewObjectID()
		return idOf(id[:]), nil
	})
	c.Limit = counter24
	return c
}

// ULID calls ulid.Make.
func ULID() Case {
	return global("oklog/ulid", 128, func(n int) error {
		for range n {
			ulid.Make()
		}
		return nil
	}, func() (ID, error) {
		id := ulid.Make()
		return idOf(id[:]), nil
	})
}

// KSUID calls ksuid.NewRandom.
func KSUID() Case {
	return global("segmentio/ksuid", 160, func(n int) error {
		for range n {
			if _, err := ksuid.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	}, func() (ID, error) {
		id, err := ksuid.NewRandom()
		return idOf(id[:]), err
	})
}

// GoogleV4 calls uuid.NewRandom of google/uuid, without its pool of randomness, as it
// is by default.
func GoogleV4() Case {
	return global("google/uuid v4", 128, func(n int) error {
		for range n {
			if _, err := google.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	}, func() (ID, error) {
		id, err := google.NewRandom()
		return idOf(id[:]), err
	})
}

// GoogleV7 calls uuid.NewV7 of google/uuid, without its pool of randomness, as it is by
// default.
func GoogleV7() Case {
	return global("google/uuid v7", 128, func(n int) error {
		for range n {
			if _, err := google.NewV7(); err != nil {
				return err
			}
		}
		return nil
	}, func() (ID, error) {
		id, err := google.NewV7()
		return idOf(id[:]), err
	})
}

// GofrsV7 calls uuid.NewV7 of gofrs/uuid.
func GofrsV7() Case {
	return global("gofrs/uuid v7", 128, func(n int) error {
		for range n {
			if _, err := gofrs.NewV7(); err != nil {
				return err
			}
		}
		return nil
	}, func() (ID, error) {
		id, err := gofrs.NewV7()
		return idOf(id[:]), err
	})
}
