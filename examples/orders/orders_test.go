//go:build unix

package orders

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// order is what the services answer, with the time of the request.
type order struct {
	ID       snowflake.ID `json:"id"`
	Number   int64        `json:"number"`
	Customer string       `json:"customer"`

	began, ended time.Time
}

// place asks a service for a number.
func place(url, customer string) (o order, err error) {
	o.began = time.Now()
	answer, err := http.Post(url+"/orders", "application/json", strings.NewReader(fmt.Sprintf(`{"customer":%q}`, customer)))
	if err != nil {
		return o, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return o, err
	}
	if answer.StatusCode != http.StatusOK {
		return o, fmt.Errorf("%s: %s", answer.Status, text)
	}
	err = json.Unmarshal(text, &o)
	o.ended = time.Now()
	return o, err
}

// start starts both services, each with a server.
func start(t *testing.T, forNode, forPython *served) (programs []*exampletest.Program, urls []string) {
	t.Helper()
	dir := modules(t)
	for _, cmd := range []*exec.Cmd{
		exec.Command(node(t), filepath.Join(dir, "orders.mjs"), "0", forNode.redis()),
		exec.Command(python(t), filepath.Join(dir, "orders.py"), "0", forPython.redis()),
	} {
		p, err := exampletest.StartCommand(t, cmd)
		require.NoError(t, err)
		programs = append(programs, p)
	}
	for _, p := range programs {
		urls = append(urls, p.Await(`listening on (\S+)`)[1])
	}
	return programs, urls
}

// The two services number orders at the same time, each with a server of its own. The
// servers share a store. The first server is killed and started again under load. No order
// fails, no ID or number comes twice, and numbers are in the order of real time.
func TestOrders(t *testing.T) {
	t.Parallel()
	first := serve(t, "ordered")
	programs, urls := start(t, first, serveFrom(t, first.state))
	const callers, each = 4, 60
	var (
		mu    sync.Mutex
		all   []order
		wg    sync.WaitGroup
		third = make(chan struct{}) // closed when a third of the orders is placed
	)
	for caller := range callers {
		for _, url := range urls {
			wg.Go(func() {
				for n := range each {
					o, err := place(url, fmt.Sprintf("%d-%d", caller, n))
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					all = append(all, o)
					if len(all) == callers*len(urls)*each/3 {
						close(third)
					}
					mu.Unlock()
				}
			})
		}
	}
	select {
	case <-third:
	case <-time.After(time.Minute):
		t.Fatal("a third of the orders is not placed after a minute")
	}
	require.NoError(t, first.Kill())
	require.NoError(t, first.Start())
	wg.Wait()

	require.Len(t, all, callers*len(urls)*each)
	ids, numbers := make(map[snowflake.ID]bool), make(map[int64]bool)
	for _, o := range all {
		assert.False(t, ids[o.ID] || numbers[o.Number], "%v was issued before", o)
		ids[o.ID], numbers[o.Number] = true, true
	}
	slices.SortFunc(all, func(a, b order) int { return a.ended.Compare(b.ended) })
	highest := make([]int64, len(all)+1) // of the first orders, by their end
	for i, o := range all {
		highest[i+1] = max(highest[i], o.Number)
	}
	for _, o := range all {
		before, _ := slices.BinarySearchFunc(all, o.began, func(a order, t time.Time) int { return a.ended.Compare(t) })
		assert.Greater(t, o.Number, highest[before], "an order that had ended before this one began has a higher number")
	}
	t.Logf("%d orders have numbers up to %d", len(all), highest[len(all)])

	for _, p := range programs {
		p.Signal(syscall.SIGTERM)
		assert.Zero(t, p.Wait())
	}
}
