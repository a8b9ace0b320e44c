package chaos_test

import (
	"context"
	"sync"
	"testing"

	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// files is one process's Store on the files of a directory. It can die as a process
// does, whose locks the operating system frees.
type files struct {
	stores.Store
	mu      sync.Mutex
	unlocks []func()
}

func openFiles(path string) (*files, error) {
	store, err := stores.Open(context.Background(), path)
	return &files{Store: store}, err
}

func (f *files) Traits() stores.Traits {
	traits := f.Store.Traits()
	lock := traits.TryLock
	traits.TryLock = func(ctx context.Context, key string) (func(), error) {
		unlock, err := lock(ctx, key)
		if err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.unlocks = append(f.unlocks, unlock)
		}
		return unlock, err
	}
	return traits
}

// Crash frees the locks.
func (f *files) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, unlock := range f.unlocks {
		unlock()
	}
	f.unlocks = nil
}

// inDirectory gives each script a directory of its own.
func inDirectory(t testing.TB) func() func() (stores.Store, error) {
	return func() func() (stores.Store, error) {
		path := t.TempDir()
		return func() (stores.Store, error) { return openFiles(path) }
	}
}
