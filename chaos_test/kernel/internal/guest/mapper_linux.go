package guest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is the one device of the device mapper.
const mapping = "/dev/dm-0"

// The interface of the device mapper, from linux/dm-ioctl.h.
const (
	mapperCreate  = 3
	mapperSuspend = 6 // also resumes
	mapperLoad    = 9

	mapperSuspended = 1 << 1
	mapperSkipSync  = 1 << 10 // the file system is not told, as it is not by a disk that fails

	mapperHeader = 312
)

// createMapping makes a device that is the disk.
func createMapping(disk string) error {
	if err := mapper(mapperCreate, 0, nil); err != nil {
		return err
	}
	return loadMapping(disk, "linear", "0")
}

// loadMapping makes the device one of the kind on the disk, also under load.
func loadMapping(disk, kind, rest string) error {
	f, err := os.Open(disk)
	if err != nil {
		return err
	}
	var size uint64
	_, _, number := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKGETSIZE64, uintptr(unsafe.Pointer(&size)))
	_ = f.Close()
	if number != 0 {
		return fmt.Errorf("size of %s: %w", disk, number)
	}
	spec := make([]byte, 40, 256)
	binary.LittleEndian.PutUint64(spec[8:], size/512)
	copy(spec[24:], kind)
	spec = append(spec, disk+" "+rest+"\x00"...)
	for _, step := range []struct {
		command, flags uint32
		data           []byte
	}{{mapperSuspend, mapperSuspended | mapperSkipSync, nil}, {mapperLoad, 0, spec}, {mapperSuspend, 0, nil}} {
		if err := mapper(step.command, step.flags, step.data); err != nil {
			return fmt.Errorf("make %s a %s device: %w", mapping, kind, err)
		}
	}
	return nil
}

// mapper sends a command about the device.
func mapper(command, flags uint32, data []byte) error {
	var b bytes.Buffer
	targets := min(uint32(len(data)), 1)
	for _, v := range []uint32{4, 0, 0, mapperHeader + 256, mapperHeader, targets, 0, flags, 0, 0, 0, 0} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.WriteString("state")
	buffer := make([]byte, mapperHeader+256)
	copy(buffer, b.Bytes())
	copy(buffer[mapperHeader:], data)
	f, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const readWrite, kind = 3 << 30, 0xfd << 8
	request := uintptr(readWrite | mapperHeader<<16 | kind | command)
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&buffer[0]))); number != 0 {
		return fmt.Errorf("device mapper, command %d: %w", command, number)
	}
	return nil
}
