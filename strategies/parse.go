package strategies

import (
	"fmt"
	"strings"
	"time"
)

// Parse reads a strategy from a text, as a flag or a configuration file holds
// it:
//
//	reject
//	wait                                 as long as the context allows
//	wait:5ms
//	borrow:1s
//	borrow:1s,wait:5s                    a chain: the first that does not reject
//	exhausted=wait:1s/behind=reject      one per cause, in this order
//	(exhausted=wait/behind=reject),wait  parentheses around a member
//	default, twitter, leaf, last-timestamp-plus-one
//
// Durations are written as [time.ParseDuration] reads them. The strategies of
// this package print themselves in this form. The error wraps [ErrInvalid].
func Parse(s string) (Strategy, error) {
	rest, ok := strings.CutPrefix(s, "exhausted=")
	if !ok {
		return parseChain(s)
	}
	exhausted, behind, ok := cut(rest, "/behind=")
	if !ok {
		return nil, parseError(s, `"exhausted=…" must be followed by "/behind=…"`)
	}
	e, err := parseChain(exhausted)
	if err != nil {
		return nil, err
	}
	b, err := parseChain(behind)
	if err != nil {
		return nil, err
	}
	return PerCause(e, b), nil
}

func parseChain(s string) (Strategy, error) {
	var members []Strategy
	for more := true; more; {
		var word string
		word, s, more = cut(s, ",")
		parse := parseWord
		if inner, ok := strings.CutPrefix(word, "("); ok && strings.HasSuffix(inner, ")") {
			word, parse = inner[:len(inner)-1], Parse
		}
		member, err := parse(word)
		if err != nil {
			return nil, err
		}
		members = append(members, member)
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return Chain(members...), nil
}

// cut is [strings.Cut] at the first separator that is in no parentheses.
func cut(s, separator string) (before, after string, found bool) {
	depth := 0
	for i := range len(s) {
		switch {
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], separator):
			return s[:i], s[i+len(separator):], true
		}
	}
	return s, "", false
}

// presets are the strategies without a limit of their own, by their words.
var presets = map[string]func() Strategy{
	"reject": Reject, "wait": Wait, "default": Default, "twitter": LikeTwitter, "leaf": LikeLeaf,
	"last-timestamp-plus-one": LastTimestampPlusOne,
}

func parseWord(word string) (Strategy, error) {
	if named := presets[word]; named != nil {
		return named(), nil
	}
	name, limit, ok := strings.Cut(word, ":")
	if !ok || name != "wait" && name != "borrow" {
		return nil, parseError(word, "not known: want reject, wait, wait:5ms, borrow:1s, default, twitter, leaf or last-timestamp-plus-one")
	}
	d, err := time.ParseDuration(limit)
	if err != nil {
		return nil, parseError(word, "want a duration after the colon, such as 5ms or 1s")
	}
	strategy := WaitUpTo(d)
	if name == "borrow" {
		strategy = BorrowUpTo(d)
	}
	if err := Validate(strategy); err != nil {
		return nil, parseError(word, "the limit is negative: it must be 0s or more")
	}
	return strategy, nil
}

// parseError returns the error for a text that is no strategy, cut to a length that fits
// a log.
func parseError(text, problem string) error {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return fmt.Errorf("%w strategy %q: %s", ErrInvalid, text, problem)
}
