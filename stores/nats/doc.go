// Package nats keeps cells in a key-value bucket of NATS JetStream, so that every process
// of a fleet, on any machine, has a node number of its own.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a nats:// or tls:// URL; import
//     this package for it.
//   - [ErrBucket]: the bucket of the namespace could lose cells.
//
// It brings 6 modules of others into a program.
//
// # URLs
//
//	nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?namespace=NAME]
//
// or tls:// to insist on TLS, which has the options cacert, cert and key. A user without a password is a token. All
// files are read at each connect. The port is 4222 and the namespace stores.DefaultNamespace if there is none. The other options are
//
//	domain=NAME      the JetStream domain of the bucket
//	replicas=N       copies of the bucket if it must be made, 1 to 5; without it 3,
//	                 or 1 on a server that is alone
//	creds=FILE       the user's credentials, as made by nsc
//
// # Format
//
// A bucket with the name of the namespace, that is, a stream KV_NAMESPACE, with one
// key per cell: with a dot for the slash and = for the dot. Its text, of at
// most 1,100 bytes, is the version and the value. The first Swap makes the bucket if
// there is none. An existing bucket is used if it keeps each cell's last value for ever and
// its leader answers reads; else the error of each method wraps [ErrBucket], and the bucket
// is not changed. Note that "nats kv add" makes buckets with direct reads, which are refused:
// give "nats stream edit KV_NAMESPACE --no-allow-direct", or let the Store make it.
//
// A Swap takes two round trips, or one for a new cell, and three if a cell was deleted. A List asks for the names of all
// cells, whatever its limit, and then for each cell that it returns, with up to 64 requests in
// flight; in a cluster it may be out of date. Plan for fleets of up to about 10,000 node numbers. A Read is one round trip. With
// more than one replica it is two, since it also writes the subject CONFIRM,
// which makes sure that the answer does not come from a deposed leader. A bucket that was deleted is an error for each process
// that has used it. The server must know the header
// Nats-Expected-Last-Subject-Sequence-Subject; 2.15 does. With an older server that
// does not, every Read of such a bucket fails.
//
// # Domains
//
// What looks like one NATS can have several JetStreams: each leaf node may have one of its own, in a domain, with a bucket of the
// same name. Processes in two of them would issue the same IDs. So a store is in the domain of its URL, whichever server it
// reaches, and a server that says another domain, or one where the URL has none, is refused. Name the same one, such as that of
// the hub, in the URLs of all processes of a fleet.
//
// # To lose nothing
//
// With its defaults, NATS syncs a write to disk only every two minutes. It survives the end of the
// server, even by SIGKILL, but not a power cut or a crash of the operating system: of
// one machine, if the bucket has one replica, and of several at about the same time
// if it has three. So set in the server's configuration
//
//	jetstream { sync_interval: always }
//
// and use three replicas on machines that do not fail together (a bucket made here has
// three in a cluster). No client can see the server's sync_interval, so stores.Open
// logs that it is unknown. While a process of the fleet may run, do not change the number of
// replicas from one to more: each process reads it once.
//
// # Failovers
//
// The tests kill the bucket's leader under load, stop it until there is another one and
// resume it, and kill the majority, while processes crash and clocks step. With three
// replicas no ID is issued twice, and IDs continue without a restart. An election takes some
// seconds, and a store that was opened by a URL leaves a server that does not answer after
// up to 15 seconds. So keep the lease's window at its default of 30 s or longer.
//
// # Rights
//
// The user must be allowed to publish to
//
//	$JS.API.STREAM.INFO.KV_NAMESPACE
//	$JS.API.STREAM.CREATE.KV_NAMESPACE     unless the bucket is there
//	$JS.API.STREAM.MSG.GET.KV_NAMESPACE
//	$KV.NAMESPACE.>
//
// and to subscribe to _INBOX.>. To list, all but the second and the last. With domain=NAME, $JS.NAME.API takes the place of
// $JS.API, and the last is $JS.NAME.API.$KV.NAMESPACE.>.
package nats
