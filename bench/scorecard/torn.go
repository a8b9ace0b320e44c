package scorecard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/directory"
)

// damages are what may become of the file of a node number.
var damages = []struct {
	name string
	do   func(data string) string
}{
	{"emptied", func(string) string { return "" }},
	{"truncated", func(data string) string { return data[:len(data)/2] }},
	{"overwritten with garbage", func(string) string { return "\x00\xff\x17 what is this?\n" }},
	{"overwritten with zeros", func(data string) string { return strings.Repeat("\x00", len(data)) }},
	{"edited to a lower limit", func(data string) string { return strings.Replace(data, `"limit":4`, `"limit":3`, 1) }},
	{"written twice over", func(data string) string { return data + data }},
}

// torn is F20: the file that keeps what was granted is damaged in each of these ways. A
// process that starts must refuse, and say which file is wrong, and leave it as it is.
// When the file has been put right, it must start above all that was issued.
func torn(ctx context.Context, r *record) {
	dir, err := os.MkdirTemp("", "tickflake-torn-")
	if err != nil {
		r.Skipped = "there is no place for a directory: " + err.Error()
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	state := filepath.Join(dir, "state")
	// One process after the other, each a minute later, with the same number.
	now := noon
	begin := func() (*process, error) {
		now = now.Add(time.Minute)
		store, err := directory.Open(state)
		if err != nil {
			return nil, err
		}
		return r.start(ctx, clocktest.NewVirtual(now), store, lease.WithNode(lease.NodeNumber(9)), lease.WithWindow(time.Second))
	}
	use := func() error {
		p, err := begin()
		if err != nil {
			return err
		}
		r.calls(p, time.Millisecond, 20*time.Millisecond)
		return p.gen.Close()
	}
	if err := use(); err != nil {
		r.failed(err)
		return
	}
	path := filepath.Join(state, "0000009.cell")
	for _, damage := range damages {
		if err := r.tear(path, damage.do, begin); err != nil {
			r.failed(fmt.Errorf("%s: %w", damage.name, err))
			return
		}
		if err := use(); err != nil {
			r.failed(fmt.Errorf("%s and put right: %w", damage.name, err))
		}
	}
}

// tear damages a file, has a process begin on it, and puts it right.
func (r *record) tear(path string, damage func(string) string, begin func() (*process, error)) error {
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	worse := damage(string(whole))
	if worse == string(whole) {
		return errors.New("it is not damaged")
	}
	if err := os.WriteFile(path, []byte(worse), 0o600); err != nil {
		return err
	}
	p, err := begin()
	if err == nil {
		r.calls(p, time.Millisecond, 20*time.Millisecond) // which shows what comes of it
		r.violate(generatortest.NoStart, "a process began on a file that was damaged")
		return p.gen.Close()
	}
	r.Errors++
	if corrupt := (*directory.CorruptError)(nil); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), path) {
		r.violate(generatortest.WrongError, "the error does not say that %s is damaged: %v", path, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != worse {
		r.violate(generatortest.NoRecovery, "the file was changed: %v", err)
	}
	return os.WriteFile(path, whole, 0o600)
}
