package page

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

//go:embed testdata/probe.js
var probe string

// look is the result of the probe.
type look struct {
	Overflow   float64 `json:"overflow"` // pixels that the page is wider than the window
	Width      float64 `json:"width"`
	Background string  `json:"background"`
	Texts      []label `json:"texts"`
	Charts     []struct {
		Name   string  `json:"name"`
		Labels []label `json:"labels"`
	} `json:"charts"`
}

type label struct {
	What     string  `json:"what"`
	Contrast float64 `json:"contrast"`
	Size     float64 `json:"size"`
	Out      float64 `json:"out"` // pixels outside of the drawing
}

// browser starts a browser, or skips the test where there is none.
func browser(t *testing.T) context.Context {
	var path string
	names := []string{"chromium-headless-shell", "chromium", "google-chrome"}
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		why := fmt.Sprintf("no browser: looked for %s; to run it: apt-get install chromium-headless-shell", strings.Join(names, ", "))
		if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which does not work for root
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "%s does not start", path)
	return ctx
}

// watched are the complaints and the requests of a tab.
type watched struct {
	mu       sync.Mutex
	said     []string
	requests []string
}

func (w *watched) event(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		w.said = append(w.said, string(event.Type))
	case *runtime.EventExceptionThrown:
		w.said = append(w.said, event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		w.said = append(w.said, event.Entry.Text)
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, event.Request.URL)
	}
}

// open opens a page in a new tab of the width and with the colour scheme.
func open(t *testing.T, ctx context.Context, page string, width int64, scheme string) (context.Context, *watched) {
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	w := new(watched)
	require.NoError(t, chromedp.Listen(ctx, w.event))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)))
	return ctx, w
}

// save writes the report to a file, and returns its address.
func save(t *testing.T, r *results.Report) string {
	name := filepath.Join(t.TempDir(), "index.html")
	require.NoError(t, os.WriteFile(name, []byte(rendered(t, r, HTML)), 0o600))
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(name)}).String()
}

// In a wide window and on a phone, light and dark, the page does not scroll sideways, all
// texts can be read, and the page asks for nothing else.
func TestInBrowser(t *testing.T) {
	ctx := browser(t)
	r := published(t)
	r.Quick = true // for a notice
	address := save(t, r)
	background := map[string]string{}
	for _, width := range []int64{1280, 360} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s, %d pixels", scheme, width), func(t *testing.T) {
				tab, w := open(t, ctx, address, width, scheme)
				got, err := chromedp.Run(tab, chromedp.Evaluate[look](probe))
				require.NoError(t, err)
				assert.EqualValues(t, width, got.Width)
				assert.Zero(t, got.Overflow, "the page scrolls sideways")
				require.Greater(t, len(got.Texts), 500)
				for _, text := range got.Texts {
					assert.GreaterOrEqual(t, text.Contrast, 4.5, "%q can hardly be read", text.What)
				}
				drawn, err := Charts(r)
				require.NoError(t, err)
				assert.Len(t, got.Charts, len(drawn))
				for _, c := range got.Charts {
					assert.Greater(t, len(c.Labels), 4, c.Name)
					for _, l := range c.Labels {
						assert.GreaterOrEqual(t, l.Contrast, 4.5, "%s: %q can hardly be read", c.Name, l.What)
						assert.GreaterOrEqual(t, l.Size, 9.0, "%s: %q is too small", c.Name, l.What)
						assert.LessOrEqual(t, l.Out, 3.0, "%s: %q is cut off", c.Name, l.What)
					}
				}
				background[scheme] = got.Background
				w.mu.Lock()
				defer w.mu.Unlock()
				assert.Empty(t, w.said, "on the console")
				assert.Equal(t, []string{address}, w.requests)
			})
		}
	}
	assert.NotEqual(t, background["light"], background["dark"])
}
