package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
)

// The playground runs the script of its address, and a person who has only a keyboard makes the
// common rule issue duplicates, and the library none. It is small, and asks no other site.
func TestPlayground(t *testing.T) {
	t.Parallel()
	ctx, dir := browser(t), t.TempDir()
	out, err := exec.Command("go", "run", "github.com/tickflake/tickflake/docs/playground", "-o", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	packed, err := os.Stat(filepath.Join(dir, "playground.wasm.gz"))
	require.NoError(t, err)
	assert.Less(t, packed.Size(), int64(3<<20), "bytes to download")
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(site.Close)
	script := url.Values{"script": {"ids 50 over 1s; step -1s; restart; ids 50 over 1s"}, "strategy": {"borrow:5s"}}
	machine := func(n int, selector string) string {
		return fmt.Sprintf("document.querySelectorAll('#machines section')[%d].querySelector(%q).textContent", n, selector)
	}
	for _, c := range []struct {
		scheme string
		width  int64
		number string
	}{{"light", 1280, "any"}, {"dark", 390, "pinned"}} {
		script.Set("number", c.number)
		b := open(t, ctx, site.URL+"/#"+script.Encode(), c.width, c.scheme)
		b.until(`document.documentElement.dataset.ready`)
		t.Logf("ready after %s ms", b.evaluate(`document.documentElement.dataset.ready`))
		ran := b.evaluate(text("ran"))
		assert.Regexp(t, `bwmarrin's rule: \d+ IDs, [1-9]\d+ duplicates`, ran)
		assert.Regexp(t, `tickflake with a store: \d+ IDs, 0 duplicates`, ran)

		b.until(`parseInt(` + machine(0, ".counts") + `) >= 20`)           // two seconds of IDs
		b.do(chromedp.KeyEvent("\t\t\t\r"), chromedp.KeyEvent("\t\t\t\r")) // past the link and Pause to a step back, then to a restart
		b.until(`/[1-9]\d* duplicates/.test(` + machine(0, ".counts") + `)`)
		if c.number == "pinned" {
			b.until(machine(1, ".said") + `.includes("ahead of the clock")`)
		} else { // the number that the next process takes is free, so there is nothing to wait for
			assert.Regexp(t, `\d: sequence 0$`, b.evaluate(machine(1, ".said")))
			assert.Contains(t, b.evaluate(machine(1, ".counts")), " 0 refused")
		}
		assert.Contains(t, b.evaluate(machine(1, ".counts")), " 0 duplicates")
		lag := func(n int) string { return fmt.Sprintf("machines[%d].wall - machines[%[1]d].ids.at(-1).at", n) }
		b.do(chromedp.KeyEvent("\t\t\r")) // to a suspend
		b.until(lag(0) + " >= 4000 && " + lag(1) + " < 1000")
		b.do(chromedp.SendKeys("#decode input", "\r"), chromedp.SendKeys("#plan input", "\r"))
		b.until(text("decoded") + `.includes("2022-06-28T16:07:40.105Z")`)
		b.until(text("planned") + `.includes("time=")`)
		b.do(chromedp.SendKeys("#decode input", "x\r"))
		b.until(text("decoded") + `.includes("decimal ID")`)

		b.looks()
		require.NoError(t, chromedp.Cancel(b.ctx))
	}
}

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

// tab is a page in a browser, with its complaints.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string
}

func (b *tab) event(event any) {
	switch event.(type) {
	case *runtime.EventConsoleAPICalled, *runtime.EventExceptionThrown, *log.EventEntryAdded:
		b.mu.Lock()
		defer b.mu.Unlock()
		text, err := json.Marshal(event)
		b.said = append(b.said, fmt.Sprintf("%T: %s %v", event, text, err))
	}
}

// open opens a page in a new tab of the width and with the colour scheme.
func open(t *testing.T, ctx context.Context, page string, width int64, scheme string) *tab {
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx))
	require.NoError(t, chromedp.Listen(ctx, b.event))
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
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
// the page has said nothing on the console and loaded nothing from another site.
func (b *tab) looks() {
	assert.Equal(b.t, "good", b.evaluate(`(() => {
		const page = document.documentElement;
		if (page.scrollWidth > page.clientWidth) return "scrolls sideways";
		const unnamed = [...document.querySelectorAll("input, button, svg, [role=region]")].find(e =>
			!e.labels?.length && !e.textContent.trim() && !document.getElementById(e.getAttribute("aria-labelledby")));
		if (unnamed) return "has no name: " + unnamed.outerHTML;
		return performance.getEntriesByType("resource").map(e => e.name).find(url => !url.startsWith(location.origin + "/")) ?? "good";
	})()`))
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.said, "on the console")
}

func text(id string) string { return fmt.Sprintf("document.getElementById(%q).textContent", id) }
