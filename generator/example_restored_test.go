//go:build unix

package generator_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
)

// The tool that takes the snapshot sends SIGUSR1 before it, and waits for the answer. After
// the restore it sends SIGUSR2, to the copy and to the original. So no call runs while the
// memory is copied, and no ID is issued before the copy has claimed another node number.
func ExampleGenerator_Restored() {
	dir, err := os.MkdirTemp("", "ids")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	gen, err := generator.Open(ctx, dir,
		generator.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	var gate sync.RWMutex // held while a snapshot may be taken
	next := func() error {
		gate.RLock()
		defer gate.RUnlock()
		_, err := gen.Next()
		return err
	}

	hold, restored := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hold, syscall.SIGUSR1)
	signal.Notify(restored, syscall.SIGUSR2)
	defer signal.Reset(syscall.SIGUSR1, syscall.SIGUSR2)
	answers := make(chan string)
	go func() { // in a program, a loop of this
		<-hold
		gate.Lock()
		answers <- "ready for the snapshot"
		<-restored
		if err := gen.Restored(ctx); err != nil {
			log.Print(err) // calls fail until it has claimed
		}
		gate.Unlock()
		answers <- "restored"
	}()

	before := gen.Node()
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-answers)
	}
	fmt.Println("next ID:", next())
	fmt.Println("another node number:", gen.Node() != before)
	// Output:
	// ready for the snapshot
	// restored
	// next ID: <nil>
	// another node number: true
}
