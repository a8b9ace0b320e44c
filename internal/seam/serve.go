package seam

import "time"

// Serve has the tags of the fields of service.Config that have a setting in "tickflake serve", by the same names: what the
// command calls the setting and says there, its default, and the least and the most that it may be. The default stands for 0.
type Serve struct {
	MaxSequences     int           `setting:"max-sequences" default:"10000" least:"1" most:"1000000" usage:"keep at most N sequences open"`
	MaxObserved      int           `setting:"max-observed" default:"100" least:"1" most:"1000000" usage:"give at most N sequences metrics of their own; the others are added up as (others)"`
	Hosts            []string      `setting:"host" value:"NAME" usage:"let HTTP clients call the server by NAME, beside its addresses and localhost"`
	AllowOpen        bool          `setting:"open" usage:"serve every program that can connect, also where the address is not on loopback"`
	AllowPlaintext   bool          `setting:"plaintext" usage:"serve without TLS, also where the address is not on loopback"`
	MaxBatch         int64         `setting:"max-batch" default:"10000" least:"1" most:"1000000" usage:"give at most N IDs in one request"`
	MaxAfter         time.Duration `setting:"max-after" default:"100ms" least:"1ms" most:"24h" usage:"if a request is for an ID above another, that one may lie at most DURATION ahead of the clock"`
	MaxNumbers       int64         `setting:"max-numbers" default:"1000000" least:"1" most:"9007199254740992" usage:"give at most N numbers of a sequence in one request"`
	MaxConnections   int           `setting:"max-connections" default:"16384" least:"1" most:"10000000" usage:"accept at most N connections to each address; a client with a token has at most half, if its entry says no other number"`
	MaxConnectionAge time.Duration `setting:"max-connection-age" default:"1h" least:"1s" most:"8760h" usage:"end a connection of HTTP or gRPC with its requests after DURATION, so that new servers get load"`
	Timeout          time.Duration `setting:"request-timeout" default:"2s" least:"1ms" most:"1h" usage:"wait at most DURATION for the IDs or numbers of a request"`
	IdleTimeout      time.Duration `setting:"idle-timeout" default:"1h" least:"1ms" most:"8760h" usage:"close an unused connection after DURATION"`
	ReadTimeout      time.Duration `setting:"read-timeout" default:"10s" least:"1ms" most:"1h" usage:"give a client at most DURATION to send a request or to take an answer; with clients, also to show a token on a new connection"`
	DrainTimeout     time.Duration `setting:"drain-timeout" default:"10s" least:"1ms" most:"24h" usage:"take at most DURATION at the end to finish the requests that run"`
	UnreadyFor       time.Duration `setting:"unready-for" default:"0s" least:"0s" most:"24h" usage:"at the end, say for DURATION that the server is not ready, and still serve"`
	UseWithin        time.Duration `setting:"use-within" default:"1s" least:"1ms" most:"24h" usage:"tell clients to use prefetched IDs within DURATION"`
}
