package engine

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"
)

// Withhold returns an error in place of err, a driver's error about a URL. It shows only
// those of words, such as the names of options, that occur in the message. Drivers repeat
// the URL in part, unescaped or as a whole, and the password may be anywhere in their
// text. The error does not wrap err, which may contain the password.
func Withhold(err error, message string, words ...string) error {
	var found []string
	for _, word := range words {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(message) {
			found = append(found, word)
		}
	}
	text := "its message is withheld, since it may show a password"
	if len(found) > 0 {
		text += "; it is about: " + strings.Join(found, ", ")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text += "; a file that the URL names does not exist"
	case errors.Is(err, fs.ErrPermission):
		text += "; a file that the URL names may not be read"
	}
	return errors.New(text)
}
