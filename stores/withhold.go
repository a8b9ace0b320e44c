package stores

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"
)

// Withhold returns an error that stands for err, a driver's objection to a URL. Of the
// message it shows only those of words, such as the names of options, that are in it.
// Drivers repeat the URL in part, unescaped or as a whole, and nothing tells where in
// their text a password is. It does not wrap err, which may hold the password.
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
