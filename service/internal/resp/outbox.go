package resp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/service/internal/limit"
)

// outbox is a connection whose Write never waits: what the kernel does not take at once is kept, and written by a
// goroutine of its own. So a client may send a whole pipeline before it reads the first reply. It lies below TLS.
type outbox struct {
	net.Conn
	half    net.Conn                  // the connection as the listener gave it, of which one direction may be closed
	try     func([]byte) (int, error) // writes what the kernel takes now; nil: nothing is tried
	ctx     context.Context           // of the server: when it has ended, all deadlines have passed
	timeout time.Duration             // in which the client has to take a part, or to send something more
	all     *atomic.Int64             // bytes that are kept for all clients

	mu      sync.Mutex
	changed sync.Cond     // a part was written, or running ended
	running bool          // the goroutine of write: nobody else writes meanwhile
	parts   [][]byte      // kept, in their order; the first is being written
	kept    int64         // bytes of them
	known   bool          // the client has shown a token, or needs none
	share   *atomic.Int64 // what is kept for the client, over all its connections
	err     error         // why nothing more is written; set once
}

// most is how many bytes may be kept before no further command is read, beside the last reply. However many clients do not
// read, each of the others has a share: half of what those before it have left.
func (o *outbox) most() int64 {
	if !o.known {
		return limit.StrangerReplies
	}
	free := limit.AllReplies - o.all.Load()
	return min(limit.Replies, max(limit.LeastReplies, free-o.share.Load()+o.kept))
}

// Write takes all of p, unless writing has failed.
func (o *outbox) Write(p []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.running && o.try != nil {
		n, o.err = o.try(p)
	}
	if o.err != nil {
		return n, o.err
	}
	if n < len(p) {
		o.keep(p[n:])
	}
	return len(p), nil
}

// keep is called with mu.
func (o *outbox) keep(p []byte) {
	const part = 8 << 10
	if last := len(o.parts) - 1; last > 0 && cap(o.parts[last])-len(o.parts[last]) >= len(p) {
		o.parts[last] = append(o.parts[last], p...)
	} else {
		o.parts = append(o.parts, append(make([]byte, 0, max(part, len(p))), p...))
	}
	o.count(int64(len(p)))
	if o.running {
		o.deadline(time.Now().Add(o.timeout)) // the client still sends
		return
	}
	o.running = true
	go o.write()
}

func (o *outbox) count(n int64) {
	o.kept += n
	o.share.Add(n)
	o.all.Add(n)
}

// write writes what is kept, until nothing is. Then, or after an error, it ends.
func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.parts) > 0 && o.err == nil {
		part := o.parts[0]
		o.deadline(time.Now().Add(o.timeout))
		o.mu.Unlock()
		_, err := o.Conn.Write(part)
		o.mu.Lock()
		o.parts = o.parts[1:]
		o.count(-int64(len(part)))
		o.err = err
		o.changed.Broadcast()
	}
	o.parts = nil
	o.count(-o.kept)
	o.deadline(time.Time{}) // a try has none
	if o.err != nil && o.ctx.Err() == nil {
		_ = o.Conn.Close() // which ends a read
	}
	o.running = false
	o.changed.Broadcast()
}

// deadline sets the time of a write. It is called with mu.
func (o *outbox) deadline(t time.Time) {
	_ = o.SetWriteDeadline(t)
	if o.ctx.Err() != nil {
		_ = o.SetWriteDeadline(past) // it may have ended before
	}
}

// wait returns when there is room for further replies, or when nothing more is written.
func (o *outbox) wait() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.running && o.kept > o.most() {
		o.changed.Wait()
	}
	return o.err
}

// end returns when all is written, or why it is not.
func (o *outbox) end() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.running {
		o.changed.Wait()
	}
	return o.err
}

// belongs says whose replies are kept: those of a client, or of a connection alone.
func (o *outbox) belongs(known bool, share *atomic.Int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.share.Add(-o.kept)
	o.known, o.share = known, share
	o.share.Add(o.kept)
}

// CloseWrite tells the client that nothing more comes.
func (o *outbox) CloseWrite() error {
	if half, ok := o.half.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Close closes the connection once all is written, such as the last message of TLS.
func (o *outbox) Close() error {
	_ = o.end()
	return o.Conn.Close()
}
