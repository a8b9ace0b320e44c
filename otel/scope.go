package oteltickflake

import (
	"runtime/debug"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names the instrumentation: the package's import path, which is its module's.
const scope = "github.com/tickflake/tickflake/otel"

// meter and tracer are those of this instrumentation, in its version.
func (c config) meter() metric.Meter {
	return c.meters.Meter(scope, metric.WithInstrumentationVersion(version()))
}

func (c config) tracer() trace.Tracer {
	return c.tracers.Tracer(scope, trace.WithInstrumentationVersion(version()))
}

// readBuildInfo is what tests replace: their own binary has no version.
var readBuildInfo = debug.ReadBuildInfo

// version is that of this module in the program, or "" if it has none, as when both are
// built from a working copy.
func version() string {
	info, ok := readBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		switch {
		case m.Path != scope:
			continue
		case m.Replace != nil:
			m = m.Replace // what is really there
		}
		if m.Version == "(devel)" {
			return ""
		}
		return m.Version
	}
	return ""
}
