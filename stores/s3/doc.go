// Package s3 keeps cells as objects of a bucket, on Amazon S3 or a server that speaks its protocol
// and heeds conditional writes, so that every process of a fleet, on any machine, has a node number
// of its own, without a server to run.
//
// You need one name: [github.com/tickflake/tickflake/stores.Open] with an s3:// URL; import this package for it.
// With a bucket and the usual credentials:
//
//	tickflake generate --store 's3://BUCKET?region=eu-central-1'
//
// It brings 19 modules of others into a program.
//
// # URLs
//
//	s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&profile=NAME&cacert=FILE&namespace=NAME]
//
// endpoint is https://HOST[:PORT] or http://HOST[:PORT]; without it, the environment decides
// (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), else the server is Amazon's. region defaults to AWS_REGION or
// AWS_DEFAULT_REGION, which Amazon needs. cacert names a file of certificate authorities in PEM,
// instead of the system's, which is read at each connect, or once behind a proxy of the environment (HTTPS_PROXY), which is used.
//
// Credentials never stand in the URL. As for every S3 client, they are those of the environment
// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), of a profile in ~/.aws/credentials, or of
// the role of the machine, the container or the pod, which may come later: without any, Open waits for them. They are
// renewed before they expire. They need s3:GetObject and s3:PutObject on BUCKET/PREFIX/NAMESPACE/*, and s3:ListBucket on
// BUCKET: else the server answers 403 for a cell that does not exist. The clock must be within 15 minutes of the server's.
//
// # Which servers
//
// A process that opens the store checks that the server heeds If-None-Match and If-Match, and
// refuses one that ignores them. Before the first process of a fleet writes it also probes, once in the life of a
// namespace, and again in "tickflake store check", whether of 8 writes at once on one condition one succeeds: 96 times, which
// takes as long as about 70 requests one after the other. Two gateways of versitygw that race on one directory were
// found in 300 of 300 probes; to find a server that races more rarely, probe again. One that was found is refused by
// all processes, until the object REFUSED! of the namespace is deleted. Objects in capitals serve for
// that: CONDITIONS!, PROBED! and RACE0! to RACE47!. The tests use versitygw. Amazon S3,
// Cloudflare R2, Tigris, Ceph and MinIO document both conditions. Google Cloud
// Storage ignores If-Match of a write, and is refused. Directory buckets (S3 Express) are refused.
//
// # Format and costs
//
// One object per cell, PREFIX/NAMESPACE/KEY!, with a text of at most 1,100 bytes, the version and
// the value. A Read is one request, and a Swap two, or one for a new cell; a List is one for each thousand
// names, and one for each cell, eight at once. A process extends its grant three times a window, with a GET
// and a PUT. At Amazon's prices of 2026 (5 USD for a million PUTs, 0.40 for GETs) it costs a month:
//
//	window     requests    USD
//	30 s        518,400    1.40
//	5 min        51,840    0.14
//	1 h           4,320    0.01
//
// So the window is 5 minutes by default here; lease.WithWindow changes it. Opening the store takes 6
// requests and a claim 4 to 7, or one for each node number where most are taken; the first claim of a fleet about 850. A process
// that ends cleanly releases its number in two requests, and the next may have it at once. The number of a process that
// crashed is free after two windows, 10 minutes; meanwhile others take other numbers.
//
// # To lose nothing
//
// Amazon S3 keeps acknowledged writes. What can still lose them: a lifecycle rule that expires objects under
// PREFIX/; a person or a tool that deletes objects or restores old versions of them; replication to a second bucket that
// the fleet is moved to. A versioned bucket keeps an old version for each write, so let a rule expire
// noncurrent versions. "tickflake store check" names such rules and versions, if it may ask (s3:GetLifecycleConfiguration,
// s3:GetBucketVersioning).
package s3
