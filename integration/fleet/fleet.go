//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The sequences of a fleet.
const (
	Ordered   = "ordered"
	Segmented = "segmented"
)

// Config says how to run a [Fleet].
type Config struct {
	Store   *servers.Server // of all servers; nil if there are none
	Servers int
	Each    func(i int, c *program.ServeConfig) // changes how server i is run, from 0 on; or nil
	// Networks puts a proxy between the clients and each server, and between each server and
	// the store, for faults.
	Networks bool
	// Sequences has flags of "tickflake sequence create" by the name of a sequence, in addition
	// to the mode.
	Sequences map[string][]string

	Keepers int          // members that issue IDs by themselves, each with a client
	Keeper  KeeperConfig // how they run

	GoClients int     // of the servers, in addition to a client of each other protocol
	Rate      float64 // calls per second of each client; 0 is as many as it can
	// Strict says that no call may fail, as clients ask another server when one is away. Servers
	// and clients then have more time than the disk of a busy machine needs.
	Strict bool
}

// recovery is how long a fleet may take until it serves, on a slow disk of a busy machine.
const recovery = 2 * time.Minute

// Member is one server of a fleet.
type Member struct {
	*program.Server
	Index   int                // from 1
	clients []*storetest.Proxy // with networks: before the server, by protocol as in Protocols
	store   *storetest.Proxy   // with networks and a store that has a server: before the store
}

// Fleet is servers of one store and their clients, which take IDs and the numbers of an ordered
// and of a segmented sequence; or keepers, which take IDs. All that they get is in ledgers. Its
// methods may be called from any goroutine, if their docs do not say otherwise.
type Fleet struct {
	Config
	*Verdict
	Members []*Member
	Clients []*Worker
	IDs     *Ledger            // of all IDs that are issued
	Numbers map[string]*Ledger // by sequence
	Layout  snowflake.Layout   // of the keepers

	created map[string]bool // stores with their sequences
	closers []func() error
	keepers []*keeper
	runs    int             // of keepers
	work    context.Context // the clients work until it ends
	rest    func()          // ends the work
	working sync.WaitGroup

	mu     sync.Mutex // of the next
	faults map[string]int64
	ended  []lease.Stats // of runs

	checking sync.Mutex
	found    [5]int64 // by earlier checks
}

// Start starts a fleet, and returns when all its servers are ready and all clients work.
// The caller closes it.
func Start(ctx context.Context, c Config) (_ *Fleet, err error) {
	of := "keepers"
	if c.Store != nil {
		of = string(c.Store.Kind)
	}
	f := &Fleet{Config: c, Verdict: NewVerdict(of), created: map[string]bool{}, faults: map[string]int64{},
		IDs: new(Ledger), Numbers: map[string]*Ledger{Ordered: {}, Segmented: {}}, Layout: snowflake.Default()}
	f.work, f.rest = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for i := range c.Servers {
		if err := f.startMember(ctx, i); err != nil {
			return nil, err
		}
	}
	if c.Servers > 0 {
		if err := f.openClients(ctx); err != nil {
			return nil, err
		}
	}
	for _, w := range f.Clients {
		for range w.goroutines {
			f.working.Go(func() { w.run(f.work) })
		}
	}
	return f, f.startKeepers(ctx)
}

// startMember starts a server, with the sequences in its store.
func (f *Fleet) startMember(ctx context.Context, i int) (err error) {
	m := &Member{Index: i + 1}
	config := program.ServeConfig{Store: f.Store.URL}
	if f.Strict {
		config.Args = []string{"--request-timeout", Patience.String(), "--drain-timeout", (4 * Patience).String()}
	}
	if f.Each != nil {
		f.Each(i, &config)
	}
	for _, name := range []string{Ordered, Segmented} {
		if f.created[config.Store+name] {
			continue
		}
		args := []string{"sequence", "create", name, "--mode", name, "--store", config.Store}
		if _, err := program.Tickflake(ctx, config.Clock, append(args, f.Sequences[name]...)...); err != nil {
			return err
		}
		f.created[config.Store+name] = true
	}
	if f.Networks && f.Store.Addr != "" {
		if m.store, err = f.proxy(f.Store.Addr); err != nil {
			return err
		}
		config.Store = f.Store.At(m.store.Addr())
	}
	if m.Server, err = program.Serve(ctx, config); err != nil {
		return err
	}
	f.closers = append(f.closers, m.Server.Close)
	for _, p := range Protocols {
		if f.Networks {
			proxy, err := f.proxy(p.At(m.Server))
			if err != nil {
				return err
			}
			m.clients = append(m.clients, proxy)
		}
	}
	f.Members = append(f.Members, m)
	return nil
}

func (f *Fleet) proxy(address string) (*storetest.Proxy, error) {
	p, err := storetest.StartProxy(address)
	if err == nil {
		f.closers = append(f.closers, func() error { p.Close(); return nil })
	}
	return p, err
}

// address is that of a protocol, by its index, for clients.
func (m *Member) address(protocol int) string {
	if len(m.clients) > 0 {
		return m.clients[protocol].Addr()
	}
	return Protocols[protocol].At(m.Server)
}

func (f *Fleet) openClients(ctx context.Context) error {
	var options []client.Option
	if f.Strict {
		options = append(options, client.WithTimeout(Patience))
	}
	var addresses []string
	for _, m := range f.Members {
		addresses = append(addresses, m.address(1))
	}
	for i := range f.GoClients {
		c, err := openGoClient(ctx, addresses, options...)
		if err != nil {
			return err
		}
		f.add(fmt.Sprint("Go client ", i+1), 2, c)
	}
	for i, p := range Protocols {
		var callers []Caller
		for _, m := range f.Members {
			callers = append(callers, p.Open(m.address(i)))
		}
		f.add(p.Name, 1, callers...)
	}
	return nil
}

func (f *Fleet) add(name string, goroutines int, callers ...Caller) {
	for _, c := range callers {
		f.closers = append(f.closers, c.Close)
	}
	f.Clients = append(f.Clients, f.worker(name, goroutines, callers...))
}

func (f *Fleet) worker(name string, goroutines int, callers ...Caller) *Worker {
	return &Worker{fleet: f, callers: callers, goroutines: goroutines, operations: operations, tries: rounds * len(callers),
		count: Client{Name: name, Errors: map[string]int64{}, Examples: map[string]string{}}}
}

// workers are the clients of the servers, and of the present runs of the keepers.
func (f *Fleet) workers() []*Worker {
	all := slices.Clone(f.Clients)
	for _, k := range f.keepers {
		all = append(all, k.Worker)
	}
	return all
}

// Rest ends the work of the clients, and of the keepers. It returns when all calls have, after a [Fleet.Check]. A
// call that has not returned a minute after its deadline breaks a promise.
func (f *Fleet) Rest() {
	f.rest()
	ended := make(chan struct{})
	go func() { f.working.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(Patience + time.Minute):
		f.Break(Ending, "a call has not returned a minute after its deadline")
	}
	f.Check()
}

// For runs a fleet until the test ends. If the test fails, the log of the keepers is shown.
func For(t testing.TB, c Config) *Fleet {
	t.Helper()
	c.Keeper.Log = t.Output()
	f, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Verify ends the work, and fails the test unless the fleet has kept all promises, or broken only some.
func (f *Fleet) Verify(t testing.TB, broken ...Promise) {
	t.Helper()
	f.Rest()
	for _, w := range f.workers() {
		t.Logf("%+v", w.Count())
	}
	for _, b := range f.Broken() {
		if !slices.Contains(broken, b.Promise) {
			t.Error(b)
		}
	}
}

// Close ends the clients and keepers, each server by [Server.Close], which is Stop of [program.Process], and the proxies.
// The store stays.
func (f *Fleet) Close() error {
	f.rest()
	f.working.Wait()
	var errs []error
	for len(f.closers) > 0 {
		last := len(f.closers) - 1
		errs = append(errs, f.closers[last]())
		f.closers = f.closers[:last]
	}
	return errors.Join(errs...)
}

// Check looks for values that came twice or out of order so far.
func (f *Fleet) Check() {
	f.checking.Lock()
	defer f.checking.Unlock()
	for i, look := range []struct {
		promise Promise
		what    string
		find    func() (int64, string)
	}{
		{Unique, "ID", f.IDs.Twice},
		{Unique, "number of the ordered sequence", f.Numbers[Ordered].Twice},
		{Unique, "number of the segmented sequence", f.Numbers[Segmented].Twice},
		{InOrder, "IDs of one source:", func() (int64, string) { return f.IDs.Disorder(true) }},
		{InOrder, "ordered sequence:", func() (int64, string) { return f.Numbers[Ordered].Disorder(false) }},
	} {
		n, example := look.find()
		f.Note(look.promise, n-f.found[i], look.what+" "+example)
		f.found[i] = max(f.found[i], n)
	}
}

// Recovered breaks a promise unless, within two minutes, each server serves IDs and both sequences, and each
// keeper gets new grants and issues IDs.
func (f *Fleet) Recovered() {
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	for _, m := range f.Members {
		w := f.worker(fmt.Sprintf("the check of server %d", m.Index), 1, Protocols[0].Open(m.address(0)))
		for _, o := range operations[1:4] { // one of each kind
			err := w.call(ctx, o)
			for err != nil && ctx.Err() == nil && m.Running() {
				Pause(ctx, 10*time.Millisecond)
				err = w.call(ctx, o)
			}
			if !m.Running() {
				f.hasEnded(m)
				break
			}
			if err != nil {
				f.Break(Returns, "server %d does not serve after the last fault: %v", m.Index, err)
			}
		}
		_ = w.callers[0].Close() // it has been read
	}
	f.keepersRecovered(ctx)
}

// hasEnded notes that a server has ended by itself.
func (f *Fleet) hasEnded(m *Member) {
	output := m.Output()
	f.Break(Lives, "server %d: %s", m.Index, output[max(0, len(output)-1000):])
}

// Pause waits, unless ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
