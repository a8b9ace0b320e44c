package guest

import "time"

// Fault is something that happens to a clock, a process, a disk or the machine. Faults
// whose needs are equal run in one machine, one after another, unless Own is set.
type Fault struct {
	Name  string // "step-back-1s"
	About string // one line
	Kind  Kind

	Calm     bool          // no clock steps: no call of ours may fail
	Wait     bool          // leases of a monoclock wait until the clock was set
	Right    bool          // after Settled, IDs of ours have the right time
	Behind   bool          // CLOCK_REALTIME is far behind in the end: who reads it may issue nothing more
	Own      bool          // needs a machine that nothing else has run in, and that is ended afterwards
	NoRTC    bool          // the machine boots at 1970
	Modules  []string      // kernel modules
	Network  bool          // the host is 10.0.2.2
	Restarts bool          // processes end and are started again
	Told     bool          // the subjects of the copy are told: Restored
	VMClock  bool          // the machine has the device VMClock; it is copied often, amid calls
	Shared   bool          // stores are on a server on the host: see Stores
	Window   time.Duration // the grant of the subjects that have a lease; 0: its default
	Timeout  time.Duration // of the subjects that count; 0: their default
	Causes   []string      // what the system says to a write that the fault fails, or the keeper of a clock that was wrong: one of these
	Limit    time.Duration // until it counts as hanging; 0: DefaultLimit

	// Alone says that it has no subjects: it sends a Finding.
	Alone bool
	// CutsPower is the file system of a disk that loses its power: the fault runs in several
	// machines, without subjects. "": it does not.
	CutsPower string

	// Before, unless it is nil, prepares the clocks before the subjects start.
	Before func() error
	// Run is what happens inside of the machine. It asks the host for the rest.
	Run func(*Stage)
}

// Kind tells which faults belong together.
type Kind string

// The kinds of faults.
const (
	Clocks    Kind = "clock"
	Processes Kind = "process"
	Copies    Kind = "copy"
	Disks     Kind = "disk"
)

// DefaultLimit is how long a fault may take, on the host's clock. It only ends a machine
// that hangs: a busy host makes all slow.
const DefaultLimit = 5 * time.Minute
