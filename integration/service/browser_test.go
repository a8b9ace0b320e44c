package service

import (
	"context"
	"fmt"
	"os"
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

	"github.com/tickflake/tickflake/integration/program"
)

// browser starts a browser, or skips the test where there is none. A whole one comes first: it asks for more, such as
// the page's icon.
func browser(t *testing.T) context.Context {
	var path string
	var err error
	for _, name := range []string{"chromium", "google-chrome", "chromium-headless-shell"} {
		if path, err = program.Find(name, "chromium"); err == nil {
			break
		}
	}
	program.Need(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which does not work for root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "%s does not start", path)
	return ctx
}

// tab is a page in a browser, with its complaints and the addresses that it asked for.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string
	requests []string
}

func (b *tab) event(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, string(event.Type))
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.said = append(b.said, event.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	}
}

// open opens a page in a new tab of the width and with the colour scheme.
func open(t *testing.T, ctx context.Context, page string, width int64, scheme string) *tab {
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx))
	require.NoError(t, chromedp.Listen(ctx, b.event))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(width, 1000), chromedp.Navigate(page))
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// until returns when the expression is true. The policy of the page forbids the eval by which
// chromedp polls.
func (b *tab) until(expression string) {
	script := fmt.Sprintf(`new Promise(done => {
		const watch = new MutationObserver(check);
		function check() { if (%s) { watch.disconnect(); done(true); return true; } }
		if (!check()) watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
	})`, expression)
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, "%s; the page has: %s", expression, b.evaluate("document.body.innerText"))
}

func (b *tab) evaluate(expression string) string {
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	require.NoError(b.t, err)
	return got
}

// looks checks that the page does not scroll sideways, that each field and button has a name, and that
// the page has said nothing on the console and asked no other site. It returns the colour behind the page.
func (b *tab) looks(site string) string {
	got := b.evaluate(`(() => {
		const page = document.documentElement;
		if (page.scrollWidth > page.clientWidth) return "scrolls sideways";
		const unnamed = [...document.querySelectorAll("input, button, svg, [role=region]")].find(e =>
			!e.labels?.length && !e.textContent.trim() && !document.getElementById(e.getAttribute("aria-labelledby")));
		return unnamed ? "has no name: " + unnamed.outerHTML : getComputedStyle(document.body).backgroundColor;
	})()`)
	assert.Regexp(b.t, `^rgb`, got)
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.said, "on the console")
	for _, r := range b.requests {
		assert.True(b.t, strings.HasPrefix(r, site+"/") || r == "data:,", r)
	}
	return got
}

func text(id string) string { return fmt.Sprintf("document.getElementById(%q).textContent", id) }
