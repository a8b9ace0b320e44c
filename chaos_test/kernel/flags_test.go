package kernel

import (
	"flag"
	"os"
	"testing"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
)

// The flags of go test.
var (
	AllFlag   = flag.Bool("kernel.all", false, "run all faults, on as many machines as they need")
	FaultFlag = flag.String("kernel.fault", "", "run this fault only")
	CutsFlag  = flag.Int("kernel.cuts", 0, "power cuts per file system; 0: 3")
	KillsFlag = flag.Int("kernel.kills", 0, "kills of the fault that kills; 0: 100")
	LogFlag   = flag.String("kernel.log", "", "a directory for the logs of the machines")
)

// Needs skips a test where no machine can be booted, unless CI says that it must be.
func Needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short boots no machine")
	}
	if raceDetector {
		t.Skip("the race detector makes an emulated machine so slow that it starves")
	}
	_, err := machine.Version(t.Context())
	if err == nil {
		_, err = Find()
	}
	if err == nil {
		return
	}
	if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}
