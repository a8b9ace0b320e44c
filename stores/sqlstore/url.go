package sqlstore

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/lease"
)

// Source is the URL of a store, taken apart by [ParseURL].
type Source struct {
	URL       *url.URL // without the parameters below
	Namespace string   // of the parameter namespace; if there is none, lease.DefaultNamespace
	Options   []Option // of the parameter table
}

// ParseURL takes the URL of a store apart, for the packages that open one. The
// scheme must be one of those given. The parameters of this package are taken out of
// the URL, and the rest of it is left as it was, for the driver:
//
//	namespace=NAME   the namespace
//	table=NAME       as [Table]
//
// Its error is a [*URLError], which wraps that of a namespace or table.
func ParseURL(rawURL string, schemes ...string) (*Source, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || !slices.Contains(schemes, scheme) {
		return nil, &URLError{Problem: fmt.Sprintf("want one that begins with %s://", strings.Join(schemes, ":// or "))}
	}
	fail := func(problem string, err error) (*Source, error) {
		return nil, &URLError{Scheme: scheme, Problem: problem, Err: err}
	}
	const encode = "percent-encode what is neither letter nor digit in user, password and values, as %40 for @"
	// What url.Parse says quotes the URL, and the password with it.
	u, err := url.Parse(rawURL)
	if err != nil {
		return fail("it is malformed; "+encode, nil)
	}
	// With a / ? or # in the password, the host may be taken to end before it, and all
	// that follows to be something that can be shown.
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return fail("it has a @ or # after the host; "+encode, nil)
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return fail("its parameters are malformed; "+encode, nil)
	}

	s := &Source{URL: u, Namespace: lease.DefaultNamespace}
	var others, seen []string
	for param := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(param, "=")
		if name != "namespace" && name != "table" {
			if param != "" {
				others = append(others, param)
			}
			continue
		}
		if slices.Contains(seen, name) {
			return fail("it has the parameter "+name+" twice", nil)
		}
		seen = append(seen, name)
		value, _ = url.QueryUnescape(value) // ParseQuery had no objection
		if name == "namespace" {
			s.Namespace, err = value, lease.CheckNamespace(value)
		} else {
			s.Options, err = append(s.Options, Table(value)), checkTable(value)
		}
		if err != nil {
			return fail("the parameter "+name+" cannot be used", err)
		}
	}
	u.RawQuery = strings.Join(others, "&")
	return s, nil
}
