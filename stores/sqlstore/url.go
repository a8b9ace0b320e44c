package sqlstore

import (
	"net/url"

	"github.com/tickflake/tickflake/stores/internal/remote"
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
	u, err := remote.ParseDriverURL(rawURL, schemes, "table")
	if err != nil {
		return nil, err
	}
	s := &Source{URL: u.URL, Namespace: u.Namespace}
	if table, ok := u.Own["table"]; ok {
		if err := checkTable(table); err != nil {
			return nil, u.Refuse("the parameter table cannot be used", err)
		}
		s.Options = append(s.Options, Table(table))
	}
	return s, nil
}
