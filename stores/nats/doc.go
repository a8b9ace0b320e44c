// Package nats keeps the cells of package lease in a key-value bucket of NATS
// JetStream, so that every process of a fleet, on any machine, has a node number of
// its own.
//
// # What is kept
//
// A bucket with the name of the namespace, that is, a stream KV_NAMESPACE, with one
// key per node number that was ever claimed: the number in seven digits, with a value
// of at most 1 KiB. Each extension of a lease is one publish with an expected
// revision. The first Swap makes the bucket if there is none. One that exists is
// used if it keeps each cell's last value for ever and its leader answers reads; else
// the error of each method wraps a [*ConfigError], and nothing is changed. Note that
// "nats kv add" makes buckets with direct reads, which are refused: give
// "nats stream edit KV_NAMESPACE --no-allow-direct", or let the Store make it.
//
// With more than one replica, each Read also writes the key "confirm", which makes
// sure that the answer is not that of a deposed leader. The server must know the header
// Nats-Expected-Last-Subject-Sequence-Subject; 2.15 does, and an older one that does
// not lets every Read of such a bucket fail.
//
// # What can be lost
//
// As NATS runs by default, an acknowledged write has been given to the operating
// system, but is synced to disk only every two minutes. It survives the end of the
// server, even by SIGKILL, but not a power cut or a crash of the operating system: of
// one machine, if the bucket has one replica, and of several at about the same time
// if it has three. Two processes may then make the same IDs. So set in the server's
// configuration
//
//	jetstream { sync_interval: always }
//
// and use three replicas on machines that do not fail together (a bucket made here has
// three in a cluster). A Store cannot see the server's sync_interval, so it cannot
// warn. Not to be done while a process of the fleet may run: deleting or purging the
// bucket or keys of it, restoring an older backup, changing the number of replicas
// from one to more (each process looks at it once).
//
// # Rights
//
// The user must be allowed to publish to
//
//	$JS.API.STREAM.INFO.KV_NAMESPACE
//	$JS.API.STREAM.CREATE.KV_NAMESPACE     unless the bucket is there
//	$JS.API.STREAM.MSG.GET.KV_NAMESPACE
//	$JS.API.CONSUMER.CREATE.KV_NAMESPACE.> and $JS.API.CONSUMER.DELETE.KV_NAMESPACE.>
//	$KV.NAMESPACE.>
//
// and to subscribe to _INBOX.>. For a list alone, all but the second and the last.
package nats
