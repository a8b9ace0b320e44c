//go:build unix

package program

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Size is what a server holds.
type Size struct {
	RSS, Goroutines, Files int64 // bytes; a number; descriptors
}

// Size asks the server how much it holds. It is zero if the server does not answer.
func (s *Server) Size(ctx context.Context) Size {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	is, _ := s.Metrics(ctx)
	return Size{RSS: int64(is["process_resident_memory_bytes"]), Goroutines: int64(is["go_goroutines"]), Files: int64(is["process_open_fds"])}
}

// Most by which a server may grow. They leave room for the collector's moods and for connections that are made again; one
// leak per fault of an hour would be more.
var Most = Size{RSS: 64 << 20, Goroutines: 256, Files: 64}

// Beyond says in what a server that has grown from one size to another is more than so much larger.
func Beyond(from, to, most Size) (how []string) {
	if from.RSS == 0 || to.RSS == 0 { // it was being started again
		return nil
	}
	for _, one := range []struct {
		what           string
		from, to, most int64
	}{
		{"bytes of memory", from.RSS, to.RSS, most.RSS},
		{"goroutines", from.Goroutines, to.Goroutines, most.Goroutines},
		{"files", from.Files, to.Files, most.Files},
	} {
		if one.to > one.from+one.most {
			how = append(how, fmt.Sprintf("%d %s, and %d at the end: more than %d more", one.from, one.what, one.to, one.most))
		}
	}
	return how
}

// OwnSize is that of this process, on Linux.
func OwnSize() Size {
	text, _ := os.ReadFile("/proc/self/statm")
	var pages, resident int64
	_, _ = fmt.Sscan(string(text), &pages, &resident)
	files, _ := os.ReadDir("/proc/self/fd")
	return Size{RSS: resident * int64(os.Getpagesize()), Goroutines: int64(runtime.NumGoroutine()), Files: int64(len(files))}
}
