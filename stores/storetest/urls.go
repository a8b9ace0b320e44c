package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/stores"
)

// TestURLs opens URLs that an engine must refuse without asking a server: good with an invalid namespace,
// unless good is "", and the keys of bad, whose errors must contain their values. No error may contain the word
// SECRET of a URL.
func TestURLs(t *testing.T, open stores.Opener, good string, bad map[string]string) {
	t.Helper()
	refused := func(rawURL, want string) error {
		_, err := open(t.Context(), rawURL)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v; want %q", rawURL, err, want)
		}
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			if text := fmt.Sprintf("%v %+v %#v", cause, cause, cause); strings.Contains(text, "SECRET") {
				t.Errorf("Open(%q) shows the secret: %s", rawURL, text)
			}
		}
		return err
	}
	for rawURL, want := range bad {
		if err := refused(rawURL, want); !errors.As(err, new(*stores.URLError)) {
			t.Errorf("Open(%q): %v is no URLError", rawURL, err)
		}
	}
	if good != "" {
		_ = refused(good+"?namespace=a/b", `namespace "a/b"`)
	}
}
