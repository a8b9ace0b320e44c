package subject

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
)

// Lines that tell no call: the subject holds, has made its generator, or has logged the rest
// of the line.
const (
	Held = "="
	Made = "+"
	Log  = "# "
)

// errorText is how much of an error is printed, in bytes.
const errorText = 600

// Parse reads a line that is neither empty nor [Held] nor [Made]. A line of another form is a failed
// call.
func Parse(line string) check.ID {
	words := strings.Fields(line)
	switch {
	case !utf8.ValidString(line):
		return check.ID{Took: -1, Err: fmt.Sprintf("a line is no text in UTF-8: %.100q", line)}
	case len(words) == 0:
		return check.ID{Took: -1, Err: "an empty line"}
	case words[0] == "!":
		return parseFailure(words[1:])
	case len(words) == 1:
		return check.ID{Text: words[0], Took: -1}
	case len(words) == 3:
		took, err := parseDuration(words[1])
		lead, failed := parseDuration(words[2])
		if err == nil && failed == nil && took >= 0 {
			return check.ID{Text: words[0], Took: took, Lead: lead}
		}
	}
	return check.ID{Took: -1, Err: fmt.Sprintf("a line is neither an ID nor \"ID TOOK LEAD\": %.100q", line)}
}

func parseFailure(words []string) check.ID {
	id := check.ID{Took: -1}
	if len(words) > 0 {
		if took, err := parseDuration(words[0]); err == nil && took >= 0 {
			id.Took, words = took, words[1:]
		}
	}
	if id.Err = strings.Join(words, " "); id.Err == "" {
		id.Err = "a call failed, without a text"
	}
	return id
}

func parseDuration(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(n), err
}

// appendLine appends the line of a call.
func appendLine(b []byte, id string, took, lead time.Duration, err error) []byte {
	switch {
	case err != nil:
		return appendFailure(b, took, err)
	case id == "" || id == Held || id == Made || id == "!" || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsSpace):
		return appendFailure(b, took, fmt.Errorf("the ID %q is no word", id))
	}
	return fmt.Appendf(b, "%s %d %d\n", id, took, lead)
}

// appendFailure appends the line of a call that failed.
func appendFailure(b []byte, took time.Duration, err error) []byte {
	return fmt.Appendf(b, "! %d %s\n", took, oneLine(err.Error()))
}

// oneLine makes a text of at most errorText bytes without line breaks.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), errorText)], "")
}
