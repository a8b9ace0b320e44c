package blockdev

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The protocol, as the NBD project specifies it: fixed newstyle, simple replies.
const (
	magicInit    = 0x4e42444d41474943
	magicOption  = 0x49484156454f5054
	magicAnswer  = 0x0003e889045565a9
	magicRequest = 0x25609513
	magicReply   = 0x67446698

	flagsOfServer = 1 | 2           // fixed newstyle, no zeroes
	flagsOfDisk   = 1 | 1<<2 | 1<<3 // has flags, flush, FUA

	optGo = 7 // the one that QEMU needs

	answerAck         = 1
	answerInfo        = 3
	answerUnsupported = 1<<31 + 1

	cmdRead  = 0
	cmdWrite = 1
	cmdDisc  = 2
	cmdFlush = 3
	cmdFUA   = 1

	errIO = 5

	maxRequest = 32 << 20
	maxOption  = 4 << 10
)

// Server serves a disk to QEMU.
type Server struct {
	disk     *Disk
	listener net.Listener
	dir      string
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// Serve serves the disk on a Unix socket in a new directory, to any number of clients. Close
// the server, then the disk.
func Serve(d *Disk) (*Server, error) {
	// The path of a socket has at most 104 bytes, so it is not in the directory of a test.
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "nbd"))
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s := &Server{disk: d, listener: listener, dir: dir, conns: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	return s, nil
}

// Socket returns the path of the socket.
func (s *Server) Socket() string { return s.listener.Addr().String() }

// Close ends all connections.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		if s.closed {
			_ = conn.Close()
		} else {
			s.conns[conn] = true
			s.running.Go(func() { s.talk(conn) })
		}
		s.mu.Unlock()
	}
}

// flushTime is the longest that a flush takes. Until its end further writes come into the
// cache, so a cut finds some there.
const flushTime = 8 * time.Millisecond

// client is a connection.
type client struct {
	*Server
	in  *bufio.Reader
	out net.Conn

	sending  sync.Mutex
	flushing sync.WaitGroup
}

// talk serves one client until it leaves, breaks the protocol, or the server is closed.
func (s *Server) talk(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	c := &client{Server: s, in: bufio.NewReaderSize(conn, 64<<10), out: conn}
	defer c.flushing.Wait()
	if err := negotiate(c.in, conn, s.disk.size); err != nil {
		return
	}
	for {
		if err := c.request(); errors.Is(err, errOff) {
			// A disk without power is silent: an error would reach the programs.
			_, _ = io.Copy(io.Discard, c.in)
			return
		} else if err != nil {
			return
		}
	}
}

// negotiate returns nil when requests follow.
func negotiate(in io.Reader, out io.Writer, size int64) error {
	hello := binary.BigEndian.AppendUint64(nil, magicInit)
	hello = binary.BigEndian.AppendUint64(hello, magicOption)
	hello = binary.BigEndian.AppendUint16(hello, flagsOfServer)
	if _, err := out.Write(hello); err != nil {
		return err
	}
	var flags uint32
	if err := binary.Read(in, binary.BigEndian, &flags); err != nil {
		return err
	}
	for {
		var option struct {
			Magic        uint64
			Kind, Length uint32
		}
		if err := binary.Read(in, binary.BigEndian, &option); err != nil {
			return err
		}
		if option.Magic != magicOption || option.Length > maxOption {
			return fmt.Errorf("option %d with magic %x and %d bytes", option.Kind, option.Magic, option.Length)
		}
		if _, err := io.CopyN(io.Discard, in, int64(option.Length)); err != nil {
			return err
		}
		answer := func(kind uint32, data []byte) error {
			b := binary.BigEndian.AppendUint64(nil, magicAnswer)
			b = binary.BigEndian.AppendUint32(b, option.Kind)
			b = binary.BigEndian.AppendUint32(b, kind)
			b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
			_, err := out.Write(append(b, data...))
			return err
		}
		if option.Kind == optGo {
			export := binary.BigEndian.AppendUint64([]byte{0, 0}, uint64(size))
			export = binary.BigEndian.AppendUint16(export, flagsOfDisk)
			return errors.Join(answer(answerInfo, export), answer(answerAck, nil))
		}
		if err := answer(answerUnsupported, nil); err != nil {
			return err
		}
	}
}

// request does one request. Its error ends the connection.
func (c *client) request() error {
	var r struct {
		Magic       uint32
		Flags, Kind uint16
		Handle      uint64
		Offset      int64
		Length      uint32
	}
	if err := binary.Read(c.in, binary.BigEndian, &r); err != nil {
		return err
	}
	if r.Magic != magicRequest || r.Length > maxRequest {
		return fmt.Errorf("request with magic %x for %d bytes", r.Magic, r.Length)
	}
	switch r.Kind {
	case cmdRead:
		data := make([]byte, r.Length)
		return c.answer(r.Handle, data, c.disk.read(data, r.Offset))
	case cmdWrite:
		data := make([]byte, r.Length)
		if _, err := io.ReadFull(c.in, data); err != nil {
			return err
		}
		return c.answer(r.Handle, nil, c.disk.write(data, r.Offset, r.Flags&cmdFUA != 0))
	case cmdFlush:
		c.flushing.Go(func() {
			time.Sleep(rand.N(flushTime))
			_ = c.answer(r.Handle, nil, c.disk.flush()) // the next request fails as this one
		})
		return nil
	case cmdDisc:
		return io.EOF
	default:
		return c.answer(r.Handle, nil, fmt.Errorf("command %d", r.Kind))
	}
}

// answer answers a request, but not if the power is cut.
func (c *client) answer(handle uint64, data []byte, failed error) error {
	if errors.Is(failed, errOff) {
		return failed
	}
	var number uint32
	if failed != nil {
		number, data = errIO, nil
	}
	b := binary.BigEndian.AppendUint32(nil, magicReply)
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint64(b, handle)
	c.sending.Lock()
	defer c.sending.Unlock()
	_, err := c.out.Write(append(b, data...))
	return err
}
