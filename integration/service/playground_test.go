package service

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

		b.looks(site.URL)
		require.NoError(t, chromedp.Cancel(b.ctx))
	}
}
