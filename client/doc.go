// Package client takes IDs and numbers from servers of "tickflake serve". An ID costs as much
// as a local counter, because the client fetches runs of IDs ahead.
//
//	ids, err := client.Open(ctx, []string{"ids-1:9380", "ids-2:9380"}, client.WithTLS(config))
//	defer ids.Close()
//	id, err := ids.Next(ctx)
//	number, err := ids.Number(ctx, "orders")
//
// You need these names:
//
//   - [Open] and [Client]: connect to one or more servers. [WithTLS] and [WithToken] are the
//     options that most callers need.
//   - [Client.Next] and [Client.NextN]: IDs. [Client.NextAfter]: one above an ID that was seen.
//   - [Client.Number] and [Client.Numbers]: counted numbers of a sequence.
//   - [Client.Layout]: its Decode returns the parts of an ID.
//   - [ErrUnavailable], [ErrBusy], [ErrOutOfRange], [ErrNotFound]: the errors.
//
// Take the library, package generator, where a Go process can have a node number and a store
// of its own: it needs no server, and its IDs are never older than the call. Take the client
// for many or short-lived processes, or if all languages are to share one service. Code that needs IDs takes a
// func(context.Context) (snowflake.ID, error): Next of a Client and NextContext of a generator both fit.
//
// A client has no Ready and no Err for probes. For readiness, call [Client.Next] with a short deadline: only a request
// shows that a server is away. Liveness needs no probe: a client goes on by itself when a server
// answers again.
//
// # Promises
//
// Uniqueness. A server issues each ID once, and the client returns each ID once. This depends
// on no clock, and on no answer: the IDs of an answer that was lost are never issued again.
// So the client may repeat every request.
//
// Order. If one call of a Client returned before another call of the same Client began, its IDs
// are smaller. This also holds when the client changes its server: it drops IDs that are not
// above the last one. If the clock of the new server is behind, calls wait until it has caught
// up.
//
// Freshness. The time in an ID is older than the server's clock, at a moment within the call, by
// at most one tick and Run.use_within of the server, 1 second by default (`--use-within`).
// The client counts by its monotonic clock, from the moment when it asked the server,
// and drops older IDs. A time may lie in the future by as much as the server's strategy borrows.
//
// # Not promised
//
// The IDs of several clients, or of a client and its server, are not in the order of the
// calls: one client uses the IDs that it fetched while the other fetches later ones. They are
// ordered by time to within the freshness.
//
// IDs are not consecutive. The client drops fetched IDs that get too old, and those that are
// left when it changes its server or is closed. [Stats] counts them.
//
// The monotonic clock of Linux stops while the machine is suspended. IDs that were fetched
// before may be issued after it, and are then older by the length of the suspend. If a snapshot
// of a virtual machine is started twice, both have the same fetched IDs. Without a VMClock
// ([WithVMClock]), open the client after the restore, or call [Client.Restored] before the next
// ID.
//
// While no server answers, a program can take IDs from a generator of its own, with the layout of the client and a node
// number that "tickflake lease reserve" keeps from the servers. They are unique, but not in order with the others.
//
// # Servers
//
// A client draws a server at random, and stays with it. When that server fails, says that it is about to
// stop, rejects a request, or has not answered for [WithTimeout], the client asks another one.
// If a server rejected a request, the client asks it again after the delay that the server
// named. If it failed, that delay doubles from 50 ms to a quarter of the timeout, at most 2 s,
// and is drawn from the upper half. A call fails with [ErrUnavailable] when no server has
// answered for [WithTimeout].
//
// All servers must have the same layout. The client asks each server for it on every new
// connection, before it takes IDs, and refuses one that has another.
//
// # How much it fetches
//
// A request asks for as many IDs as were issued in the last quarter of the freshness, up to
// the server's largest batch, and at least as many as calls wait for. It is sent when the IDs
// at hand last no longer than two answers take. One runs at a time, so a client gets at most
// that batch per round trip: 500,000 IDs per second from a server 20 ms away, by default. A program with one ID per second asks for one
// ID per call. For a program that stops issuing IDs the client sends nothing, and has no timer
// and no goroutine but those of its connections, which end after 30 minutes without a request.
package client
