package peers

import (
	"reflect"
	"runtime"
	"strings"
)

// version is that of the peer's module, or empty. It is taken from the names of
// source files, since the build information of a test has no modules.
func (p Peer) version() string {
	switch {
	case p.Module == "":
		return "this one"
	case p.symbol == nil:
		return ""
	}
	f := runtime.FuncForPC(reflect.ValueOf(p.symbol).Pointer())
	file, _ := f.FileLine(f.Entry())
	_, rest, _ := strings.Cut(file, p.Module+"@")
	version, _, _ := strings.Cut(rest, "/")
	return version
}
