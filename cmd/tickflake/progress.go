package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barDelay is how long a run may take without showing a bar.
const barDelay = 500 * time.Millisecond

// progressScreen returns the terminal on which to show progress: stderr, if
// somebody watches it, and if the output itself does not scroll by there.
func progressScreen(stdout, stderr io.Writer) *os.File {
	screen := terminal(stderr)
	if terminal(stdout) != nil {
		return nil
	}
	return screen
}

// terminal returns w if it is a terminal, and nil otherwise.
func terminal(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// newBar returns a bar that shows on the screen how many of count things are
// done, or nothing if there is no screen.
func newBar(screen *os.File, count int64, things string) *progressbar.ProgressBar {
	if screen == nil {
		return progressbar.NewOptions64(count, progressbar.OptionSetVisibility(false))
	}
	return progressbar.NewOptions64(count,
		progressbar.OptionSetWriter(&lateWriter{screen, time.Now().Add(barDelay)}),
		progressbar.OptionSetWidth(barWidth(screen, count, things)),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(things),
		progressbar.OptionClearOnFinish(),
	)
}

// barWidth is what the figures around the bar leave of the line, within reason:
//
//	100% [===>...] (2000/4000, 4000000 IDs/s) [1h10m10s:1h10m10s]
func barWidth(screen *os.File, count int64, things string) int {
	figures := 43 + len(things) + 2*len(strconv.FormatInt(count, 10))
	columns, _, err := term.GetSize(int(screen.Fd()))
	if err != nil || columns == 0 {
		columns = 80
	}
	return min(max(columns-figures, 1), 40)
}

// lateWriter drops what is written before a moment, so that a short run shows no
// bar at all.
type lateWriter struct {
	w    io.Writer
	from time.Time
}

func (l *lateWriter) Write(p []byte) (int, error) {
	if time.Now().Before(l.from) {
		return len(p), nil
	}
	return l.w.Write(p)
}
