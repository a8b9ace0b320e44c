package resp

import (
	"runtime/debug"
	"strings"
	"sync"
)

// version returns that of the tickflake modules in this program.
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if strings.HasPrefix(module.Path, "github.com/tickflake/tickflake") && module.Version != "" && !strings.HasPrefix(module.Version, "v0.0.0-0001") {
			return module.Version
		}
	}
	return "devel"
})
