package kernel

import (
	"context"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
)

// Kernel is a kernel of Debian on the host's disk.
type Kernel = machine.Kernel

// Find returns the newest kernel of this host that the bench can boot. Its error says how
// to get one.
func Find() (Kernel, error) { return machine.Find() }

// Fetch downloads a kernel into the user's cache directory, unless QEMU is missing. It needs
// apt-get, and no rights. It tells said, which may be nil, what is downloaded.
func Fetch(ctx context.Context, said func(string)) (Kernel, error) {
	if _, err := machine.Version(ctx); err != nil {
		return Kernel{}, err
	}
	return machine.Fetch(ctx, said)
}
