package seam

import "time"

// Serve has the tags of the fields of service.Config that have a setting in "tickflake serve", by the same names: what the
// command calls the setting and says there, its default, and the least and the most that it may be. The default stands for 0.
type Serve struct {
	MaxSequences     int           `setting:"max-sequences" default:"10000" least:"1" most:"1000000" usage:"sequences are open at once, at most"`
	MaxObserved      int           `setting:"max-observed" default:"100" least:"1" most:"1000000" usage:"sequences, and as many clients, have metrics of their own, at most; the others are added up as (others)"`
	Hosts            []string      `setting:"host" value:"NAME" usage:"by which HTTP clients may call the server, beside its addresses and localhost"`
	AllowOpen        bool          `setting:"open" usage:"serve every program that can connect, also where the address is not on loopback"`
	AllowPlaintext   bool          `setting:"plaintext" usage:"serve without TLS, also where the address is not on loopback"`
	MaxBatch         int64         `setting:"max-batch" default:"10000" least:"1" most:"1000000" usage:"IDs in one request, at most"`
	MaxAfter         time.Duration `setting:"max-after" default:"100ms" least:"1ms" most:"24h" usage:"that the ID of a request for a larger one may lie ahead of the clock, at most"`
	MaxNumbers       int64         `setting:"max-numbers" default:"1000000" least:"1" most:"9007199254740992" usage:"numbers of a sequence in one request, at most"`
	MaxConnections   int           `setting:"max-connections" default:"16384" least:"1" most:"10000000" usage:"connections to each address, at most; a client with a token has at most half, if its entry says no other number"`
	MaxConnectionAge time.Duration `setting:"max-connection-age" default:"1h" least:"1s" most:"8760h" usage:"after which a connection of HTTP or gRPC ends with its requests, so that new servers get load"`
	Timeout          time.Duration `setting:"request-timeout" default:"2s" least:"1ms" most:"1h" usage:"to wait for the IDs or numbers of a request, at most"`
	IdleTimeout      time.Duration `setting:"idle-timeout" default:"1h" least:"1ms" most:"8760h" usage:"after which an unused connection is closed"`
	ReadTimeout      time.Duration `setting:"read-timeout" default:"10s" least:"1ms" most:"1h" usage:"to receive a request or to send an answer, at most; with clients, also to show a token on a new connection"`
	DrainTimeout     time.Duration `setting:"drain-timeout" default:"10s" least:"1ms" most:"24h" usage:"to finish the requests that run at the end, at most"`
	UnreadyFor       time.Duration `setting:"unready-for" default:"0s" least:"0s" most:"24h" usage:"for which the server says at the end that it is not ready, and still serves"`
	UseWithin        time.Duration `setting:"use-within" default:"1s" least:"1ms" most:"24h" usage:"for which the time of prefetched IDs is true"`
	Spare            time.Duration `setting:"spare" default:"0s" least:"0s" most:"24h" usage:"that the grant must still have for the server to be ready; 0s is a tick"`
	AccessLog        int64         `setting:"access-log" default:"0" least:"0" most:"9007199254740992" usage:"log one served request in so many; 0 logs none, but refused ones, a few per second"`
}
