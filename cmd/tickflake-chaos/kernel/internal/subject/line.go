package subject

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
)

// Lines that tell no call: the subject holds, has made its generator, or has logged the rest
// of the line.
const (
	Held = "="
	Made = "+"
	Log  = "# "
)

// And stands between the IDs of one call.
const And = ","

// errorText is how much of an error is printed, in bytes.
const errorText = 600

// Parse reads a line that tells a call. A line of another form is a failed call.
func Parse(line string) check.ID {
	id, rest, more := strings.Cut(line, " ")
	took, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(took, 10, 64)
	switch {
	case !utf8.ValidString(line) || more && err != nil:
		return check.ID{Took: -1, Err: fmt.Sprintf("a line is neither an ID nor \"ID TOOK LEAD\": %.100q", line)}
	case !more:
		return check.ID{Text: id, Took: -1}
	case id == "!":
		return check.ID{Took: time.Duration(n), Err: rest}
	}
	lead, rest, _ := strings.Cut(rest, " ")
	marker, lag, _ := strings.Cut(rest, " ")
	ahead, _ := strconv.ParseInt(lead, 10, 64) // 0 is none
	of, _ := strconv.ParseUint(marker, 10, 64) // 0 is none
	behind, _ := strconv.ParseInt(lag, 10, 64) // 0 is none
	return check.ID{Text: id, Took: time.Duration(n), Lead: time.Duration(ahead), Lag: time.Duration(behind), Marker: of}
}

// failure is the line of a call that failed.
func failure(took time.Duration, err error) string {
	return fmt.Sprintf("! %d %s", took, oneLine(err.Error()))
}

// oneLine makes a text of at most errorText bytes without line breaks.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), errorText)], "")
}
