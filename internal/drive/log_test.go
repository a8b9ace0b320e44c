package drive_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/drive"
)

// TestLog: 64 lines of a level at once, then one per minute, and the last one comes late.
func TestLog(t *testing.T) {
	var text bytes.Buffer
	begin := time.Hour
	now := begin
	limited := drive.NewLog(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}), func() time.Duration { return now })
	log := slog.New(limited)
	lines := func() (passed []string) {
		passed = strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		text.Reset()
		return passed
	}
	for i := range 100 {
		log.Info("info", "i", i)
	}
	log.Warn("warn")
	passed := lines()
	assert.Len(t, passed, 65)
	assert.Contains(t, passed[64], "msg=warn", "a level of its own")
	assert.NotContains(t, strings.Join(passed, ""), "dropped")
	for range 100 {
		log.Debug("debug")
	}
	assert.Len(t, lines(), 100, "they are for who looks for a fault")
	now = begin + 59*time.Second
	limited.Flush(t.Context())
	assert.Empty(t, text.String())
	now = begin + 3*time.Minute
	limited.Flush(t.Context())
	limited.Flush(t.Context())
	passed = lines()
	assert.Len(t, passed, 1)
	assert.Contains(t, passed[0], "msg=info i=99 dropped=35")
	log.Info("info", "i", 100)
	log.Info("info", "i", 101)
	log.Info("info", "i", 102)
	assert.Len(t, lines(), 2, "as many as minutes have passed")
	now = begin + 100*time.Hour
	limited.Flush(t.Context())
	assert.Contains(t, lines()[0], "i=102")
	for range 100 {
		log.Info("info")
	}
	assert.Len(t, lines(), 63, "at most 64 after a pause, and one is written already")
}
