package blockdev_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/blockdev"
)

const (
	size   = 1 << 20
	sector = 512
	read   = 0
	write  = 1
	flush  = 3
	fua    = 1
)

// client is an NBD client that has one request out at a time.
type client struct {
	t    *testing.T
	conn net.Conn
}

type fixture struct {
	image  string
	disk   *blockdev.Disk
	server *blockdev.Server
}

func open(t *testing.T, seed uint64, deaf bool) fixture {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, make([]byte, size), 0o600))
	disk, err := blockdev.Open(image, seed, deaf)
	require.NoError(t, err)
	server, err := blockdev.Serve(disk)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.NoError(t, disk.Close())
		assert.NoFileExists(t, server.Socket())
	})
	return fixture{image, disk, server}
}

// durable returns the content of the image.
func (f fixture) durable(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(f.image)
	require.NoError(t, err)
	return data
}

// connect negotiates as QEMU does: options that the server need not know, then GO.
func (f fixture) connect(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("unix", f.server.Socket())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	c := &client{t, conn}
	assert.Equal(t, "NBDMAGICIHAVEOPT\x00\x03", string(c.take(18)))
	c.put(uint32(3))
	const structured, list, goOn = 8, 3, 7
	for _, kind := range []uint32{structured, list, goOn} {
		c.put([]byte("IHAVEOPT"), kind, uint32(6), []byte{0, 0, 0, 0, 0, 0})
		if kind != goOn {
			assert.Equal(t, uint32(1<<31+1), c.answer(kind), "option %d is refused", kind)
		}
	}
	assert.Equal(t, uint32(3), c.answer(goOn), "the export")
	assert.Equal(t, uint32(1), c.answer(goOn), "the end of the options")
	return c
}

func (c *client) put(values ...any) {
	c.t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		require.NoError(c.t, binary.Write(&b, binary.BigEndian, v))
	}
	_, err := c.conn.Write(b.Bytes())
	require.NoError(c.t, err)
}

func (c *client) take(n int) []byte {
	c.t.Helper()
	data := make([]byte, n)
	_, err := io.ReadFull(c.conn, data)
	require.NoError(c.t, err)
	return data
}

// answer returns the kind of the next answer to an option, and checks an export's content.
func (c *client) answer(option uint32) uint32 {
	c.t.Helper()
	head := c.take(20)
	assert.Equal(c.t, uint64(0x3e889045565a9), binary.BigEndian.Uint64(head))
	assert.Equal(c.t, option, binary.BigEndian.Uint32(head[8:]))
	data := c.take(int(binary.BigEndian.Uint32(head[16:])))
	if len(data) > 0 {
		assert.Equal(c.t, uint64(size), binary.BigEndian.Uint64(data[2:]))
		assert.Equal(c.t, uint16(0b1101), binary.BigEndian.Uint16(data[10:]), "it has a cache: flush and FUA")
	}
	return binary.BigEndian.Uint32(head[12:])
}

// do sends a request, and returns the number of the error and the data.
func (c *client) do(kind, flags uint16, offset int64, data []byte) uint32 {
	c.t.Helper()
	c.put(uint32(0x25609513), flags, kind, uint64(offset)+7, offset, uint32(len(data)))
	if kind == write {
		c.put(data)
	}
	head := c.take(16)
	assert.Equal(c.t, uint32(0x67446698), binary.BigEndian.Uint32(head))
	assert.Equal(c.t, uint64(offset)+7, binary.BigEndian.Uint64(head[8:]), "the handle")
	number := binary.BigEndian.Uint32(head[4:])
	if kind == read && number == 0 {
		copy(data, c.take(len(data)))
	}
	return number
}

func (c *client) ok(kind, flags uint16, offset int64, data []byte) {
	c.t.Helper()
	require.Zero(c.t, c.do(kind, flags, offset, data))
}

func filled(b byte, sectors int) []byte { return bytes.Repeat([]byte{b}, sectors*sector) }

// A write is read back at once, and is durable after a flush, or at once with FUA.
func TestDurable(t *testing.T) {
	f := open(t, 1, false)
	c := f.connect(t)
	c.ok(write, 0, 0, filled(1, 4))
	c.ok(write, 0, sector, filled(2, 1))
	data := filled(9, 5)
	c.ok(read, 0, 0, data)
	want := slices.Concat(filled(1, 1), filled(2, 1), filled(1, 2), filled(0, 1))
	assert.True(t, bytes.Equal(want, data), "a read sees the cache")
	assert.True(t, bytes.Equal(make([]byte, size), f.durable(t)), "nothing is durable before a flush")

	c.ok(write, fua, 3*sector, filled(3, 2))
	assert.True(t, bytes.Equal(slices.Concat(filled(0, 3), filled(3, 2)), f.durable(t)[:5*sector]), "FUA makes durable its own sectors")

	c.ok(flush, 0, 0, nil)
	assert.True(t, bytes.Equal(slices.Concat(want[:3*sector], filled(3, 2)), f.durable(t)[:5*sector]), "a flush makes everything durable, and nothing older over it")
	assert.Equal(t, blockdev.Stats{Reads: 1, Writes: 3, Flushes: 1, FUAs: 1}, f.disk.Stats())
}

// A cut drops unflushed pages, or keeps any content that they had; the flushed ones stay.
func TestCut(t *testing.T) {
	const cuts, sectors = 60, 16
	outcomes := map[string]int{}
	torn := 0
	for seed := range uint64(cuts) {
		f := open(t, seed, false)
		c := f.connect(t)
		c.ok(write, 0, 0, filled(1, 2*sectors))
		c.ok(flush, 0, 0, nil)
		c.ok(write, 0, 0, filled(2, sectors))
		c.ok(write, 0, 0, filled(3, sectors))
		require.NoError(t, f.disk.Cut())

		data := f.durable(t)
		assert.True(t, bytes.Equal(filled(1, sectors), data[sectors*sector:2*sectors*sector]), "seed %d lost a flushed sector", seed)
		found := map[byte]int{}
		for i := range sectors {
			part := data[i*sector : (i+1)*sector]
			require.True(t, bytes.Equal(filled(part[0], 1), part), "seed %d: a sector is whole", seed)
			found[part[0]]++
		}
		stats := f.disk.Stats()
		assert.Equal(t, sectors, stats.Dropped+stats.Kept)
		assert.Equal(t, found[3], stats.Kept)
		switch {
		case found[1] == sectors:
			outcomes["nothing kept"]++
		case found[3] == sectors:
			outcomes["all kept"]++
		default:
			outcomes["some kept"]++
			torn += found[2]
		}
	}
	assert.Len(t, outcomes, 3, "%v", outcomes)
	assert.NotZero(t, torn, "no cut kept an older content")
}

// A page is old or new as a whole, whatever a cut keeps.
func TestCutTearsNoPage(t *testing.T) {
	const page = 8
	seen := map[byte]bool{}
	for seed := range uint64(60) {
		f := open(t, seed, false)
		c := f.connect(t)
		for b := byte(1); b <= 3; b++ {
			c.ok(write, 0, 0, filled(b, page))
		}
		require.NoError(t, f.disk.Cut())
		is := f.durable(t)[:page*sector]
		require.Equal(t, filled(is[0], page), is, "torn")
		seen[is[0]] = true
	}
	require.Len(t, seen, 4, "nothing, or any content")
}

// One seed cuts alike each time.
func TestCutSeed(t *testing.T) {
	cut := func(seed uint64) []byte {
		f := open(t, seed, false)
		c := f.connect(t)
		c.ok(write, 0, 0, filled(1, 64))
		c.ok(write, 0, 0, filled(2, 64))
		require.NoError(t, f.disk.Cut())
		return f.durable(t)
	}
	differ := false
	for seed := range uint64(8) {
		assert.True(t, bytes.Equal(cut(seed), cut(seed)))
		differ = differ || !bytes.Equal(cut(seed), cut(seed+1))
	}
	assert.True(t, differ)
}

// A disk without power answers nothing, not even an error, until it is on again.
func TestOff(t *testing.T) {
	f := open(t, 1, false)
	c := f.connect(t)
	c.ok(write, fua, 0, filled(1, 1))
	require.NoError(t, f.disk.Cut())
	c.put(uint32(0x25609513), uint16(0), uint16(flush), uint64(0), int64(0), uint32(0))
	c.put(uint32(0x25609513), uint16(fua), uint16(write), uint64(0), int64(0), uint32(sector), filled(2, 1))
	require.NoError(t, c.conn.(*net.UnixConn).CloseWrite())
	_, err := c.conn.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "no answer before the end of the connection")

	f.disk.On()
	data := filled(9, 1)
	f.connect(t).ok(read, 0, 0, data)
	assert.Equal(t, filled(1, 1), data)
}

// A deaf disk loses what it said to be durable.
func TestDeaf(t *testing.T) {
	f := open(t, 1, true)
	c := f.connect(t)
	c.ok(write, fua, 0, filled(1, 1))
	c.ok(flush, 0, 0, nil)
	assert.True(t, bytes.Equal(make([]byte, size), f.durable(t)))
}

// A full cache becomes durable by itself, also if it is full of one sector.
func TestFullCache(t *testing.T) {
	const whole = size / sector
	f := open(t, 1, false)
	c := f.connect(t)
	for range blockdev.MaxCache / whole {
		c.ok(write, 0, 0, filled(1, whole))
	}
	c.ok(write, fua, 0, filled(2, whole)) // takes its sectors out of the cache
	for range blockdev.MaxCache / whole {
		c.ok(write, 0, 0, filled(3, whole))
	}
	assert.True(t, bytes.Equal(filled(2, whole), f.durable(t)))
	c.ok(write, 0, 0, filled(4, whole))
	assert.True(t, bytes.Equal(filled(4, whole), f.durable(t)))
}

// Requests outside of the disk, or of parts of sectors, and unknown ones fail, and the
// connection goes on.
func TestBadRequests(t *testing.T) {
	f := open(t, 1, false)
	c := f.connect(t)
	assert.NotZero(t, c.do(read, 0, size, filled(0, 1)), "behind the end")
	assert.NotZero(t, c.do(write, 0, size-sector, filled(1, 2)), "over the end")
	assert.NotZero(t, c.do(read, 0, -sector, filled(0, 1)), "before the beginning")
	assert.NotZero(t, c.do(write, 0, 1, filled(1, 1)), "no whole sector")
	assert.NotZero(t, c.do(6, 0, 0, nil), "write zeroes was not offered")
	assert.True(t, bytes.Equal(make([]byte, size), f.durable(t)))
	c.ok(write, fua, size-sector, filled(1, 1))
}

func TestOpenBadImage(t *testing.T) {
	_, err := blockdev.Open(filepath.Join(t.TempDir(), "none"), 1, false)
	assert.ErrorIs(t, err, os.ErrNotExist)
	odd := filepath.Join(t.TempDir(), "odd")
	require.NoError(t, os.WriteFile(odd, make([]byte, 700), 0o600))
	_, err = blockdev.Open(odd, 1, false)
	assert.ErrorContains(t, err, "700 bytes")
}
