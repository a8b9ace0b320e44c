package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/etcd"
	"github.com/tickflake/tickflake/stores/mysql"
	"github.com/tickflake/tickflake/stores/nats"
	"github.com/tickflake/tickflake/stores/postgres"
	"github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/zookeeper"
)

// storeVariable is the environment's variable that stands in for --store: a password in
// it is not in the list of processes.
const storeVariable = "TICKFLAKE_STORE"

const storesHelp = `Stores: node numbers are kept in the per-user state directory unless --state names
another, or --store, or else $` + storeVariable + `, gives the URL of a store that several
machines share:

  file:DIR                       as --state DIR: for the processes of one host
  etcd://HOST:PORT               etcds:// with TLS
  zk://HOST:PORT                 zks:// with TLS
  postgres://USER:PASSWORD@HOST:PORT/DATABASE
  mysql://USER:PASSWORD@HOST:PORT/DATABASE
  redis://HOST:PORT              rediss:// with TLS
  nats://HOST:PORT               tls:// with TLS

?namespace=NAME at the end of a URL, or --namespace, tells fleets apart that share a
store; of a directory it is the sub-directory NAME. What else can be written in a URL
is in the doc of the package under stores/.

The per-user state directory is $XDG_STATE_HOME/tickflake or ~/.local/state/tickflake
(macOS: ~/Library/Application Support/tickflake, Windows: %LocalAppData%\tickflake).
In it, each layout has a directory of its own, so that layouts do not get in each
other's way; anywhere else a layout that differs from that of the cells is refused.`

// defaultTimeout is how long a store may take, unless --timeout says otherwise.
const defaultTimeout = 5 * time.Second

// fileScheme is that of the directory, which needs no opener.
const fileScheme = "file"

// opener opens a store by its URL.
type opener func(ctx context.Context, rawURL string) (lease.Store, func() error, error)

// storeSchemes are the URLs that --store takes, in the order of help texts.
var storeSchemes = []string{fileScheme, "etcd", "etcds", "zk", "zks", "postgres", "postgresql", "mysql", "redis", "rediss", "nats", "tls"}

var openers = map[string]opener{
	"etcd": openerOf(etcd.Open), "etcds": openerOf(etcd.Open),
	"zk": openerOf(zookeeper.Open), "zks": openerOf(zookeeper.Open),
	"postgres": openerOf(postgres.Open), "postgresql": openerOf(postgres.Open),
	"mysql": openerOf(mysql.Open),
	"redis": openerOf(redis.Open), "rediss": openerOf(redis.Open),
	"nats": openerOf(nats.Open), "tls": openerOf(nats.Open),
}

func openerOf[S interface {
	lease.Store
	Close() error
}](open func(context.Context, string) (S, error)) opener {
	return func(ctx context.Context, rawURL string) (lease.Store, func() error, error) {
		store, err := open(ctx, rawURL)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
}

// schemeError reports a store's URL that begins with nothing known. It shows no more
// of it than the scheme, since a mistyped one may hold a password anywhere.
type schemeError struct {
	Scheme string   // or empty if there is none
	Known  []string // the schemes that there are
}

func (e *schemeError) Error() string {
	what := "no scheme"
	if e.Scheme != "" {
		what = fmt.Sprintf("unknown scheme %q", e.Scheme)
	}
	return fmt.Sprintf("%s; want file:DIR or a URL that begins with %s://", what, strings.Join(e.Known[1:], "://, "))
}

// missingError reports a directory that is to be looked at, and does not exist.
type missingError struct {
	Path    string
	Default bool // it was not named, so it is no mistake
}

func (e *missingError) Error() string {
	return fmt.Sprintf("no node number was ever claimed here: there is no directory %s", e.Path)
}

// timeoutError is the cause of the end of what --timeout bounds.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("gave up after %s (--timeout)", e.after) }

func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// place is where node numbers are kept, as the flags say.
type place struct {
	scheme, url string // --store; the url is without file: if that is the scheme
	dir         string // --state
	namespace   string
	timeout     time.Duration
}

// placeFlags adds the flags that say where node numbers are kept.
func placeFlags(cmd *cobra.Command) *place {
	p := &place{timeout: defaultTimeout}
	cmd.Flags().Func("store", "`URL` of the store that keeps node numbers: file:DIR, etcd://, zk://, postgres://, mysql://, redis:// or nats://, see above (default $"+storeVariable+", or else the per-user state directory)", p.setURL)
	cmd.Flags().Func("state", "directory `DIR` that keeps node numbers, short for --store file:DIR", func(s string) error {
		if p.dir = s; s == "" {
			return errors.New("want the name of a directory")
		}
		return nil
	})
	cmd.Flags().Func("namespace", "`NAME` of the fleet in the store (default \""+lease.DefaultNamespace+"\", and of a directory none)", func(s string) error {
		p.namespace = s
		return lease.CheckNamespace(s)
	})
	durationFlag(cmd, "timeout", "`DURATION` to wait for the store and for a node number, at most", &p.timeout)
	completeFlag(cmd, "namespace", nil)
	if err := cmd.MarkFlagDirname("state"); err != nil {
		panic(err) // no such flag
	}
	var urls []cobra.Completion
	for _, scheme := range storeSchemes {
		if urls = append(urls, scheme+"://"); scheme == fileScheme {
			urls[0] = "file:"
		}
	}
	if err := cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(urls, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)); err != nil {
		panic(err)
	}
	return p
}

func (p *place) setURL(s string) error {
	if dir, ok := strings.CutPrefix(s, "file:"); ok {
		// As file:///DIR too; a host makes no sense.
		if rest, ok := strings.CutPrefix(dir, "//"); ok {
			if dir = strings.TrimPrefix(rest, "localhost"); !strings.HasPrefix(dir, "/") {
				return errors.New("file://HOST names a directory of another host: want file:DIR or file:///DIR")
			}
		}
		if dir == "" || strings.HasPrefix(dir, "?") {
			return errors.New("file: needs the name of a directory, as file:DIR")
		}
		p.scheme, p.url = fileScheme, dir
		return nil
	}
	scheme, rest, ok := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if _, known := openers[scheme]; !ok || !known {
		letters := func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("+-.", r)
		}
		if !ok || len(scheme) > 20 || strings.ContainsFunc(scheme, letters) {
			scheme = ""
		}
		return &schemeError{Scheme: scheme, Known: storeSchemes}
	}
	p.scheme, p.url = scheme, scheme+"://"+rest
	return nil
}

// check returns an error if flags contradict each other, and takes the store from the
// environment if they name none.
func (p *place) check() error {
	if rawURL := os.Getenv(storeVariable); p.isDefault() && rawURL != "" {
		if err := p.setURL(rawURL); err != nil {
			return &usageError{fmt.Errorf("$%s: %w", storeVariable, err)}
		}
	}
	if p.dir != "" && p.scheme != "" {
		return &usageError{errors.New("--state does not go with --store: they name two stores")}
	}
	_, query, _ := strings.Cut(p.url, "?")
	for param := range strings.SplitSeq(query, "&") {
		if p.namespace != "" && strings.HasPrefix(param, "namespace=") {
			return &usageError{errors.New("--namespace does not go with a --store that has ?namespace= in its URL")}
		}
	}
	return nil
}

// isDirectory reports whether node numbers are kept on this host alone.
func (p *place) isDirectory() bool { return p.scheme == "" || p.scheme == fileScheme }

// isDefault reports whether no flag names a store.
func (p *place) isDefault() bool { return p.scheme == "" && p.dir == "" }

// within bounds ctx by --timeout.
func (p *place) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.timeout, &timeoutError{p.timeout})
}

// open opens the store. The layout decides on the directory if none is named. Only
// if make is true may the directory be made.
func (p *place) open(ctx context.Context, layout snowflake.Layout, make bool) (lease.Store, func() error, error) {
	if !p.isDirectory() {
		store, closeStore, err := openers[p.scheme](ctx, p.fullURL())
		return store, closeStore, storeURLError(err)
	}
	path, err := p.path(layout)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); !make && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &missingError{Path: path, Default: p.isDefault()}
	}
	store, err := directory.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return store, func() error { return nil }, nil
}

// fullURL is the URL with the namespace.
func (p *place) fullURL() string {
	switch {
	case p.namespace == "":
		return p.url
	case strings.Contains(p.url, "?"):
		return p.url + "&namespace=" + p.namespace
	}
	return p.url + "?namespace=" + p.namespace
}

// path is the directory's.
func (p *place) path(layout snowflake.Layout) (string, error) {
	switch {
	case p.dir != "":
		return filepath.Join(p.dir, p.namespace), nil
	case p.isDefault():
		base, err := directory.DefaultPath()
		return filepath.Join(base, layoutDirectory(layout), p.namespace), err
	}
	dir, query, _ := strings.Cut(p.url, "?")
	namespace := p.namespace
	if query != "" {
		name, ok := strings.CutPrefix(query, "namespace=")
		if !ok {
			return "", &usageError{errors.New("--store: the only option of file: is ?namespace=NAME; a directory with a ? in its name goes with --state")}
		}
		if err := lease.CheckNamespace(name); err != nil {
			return "", &usageError{fmt.Errorf("--store: %w", err)}
		}
		namespace = name
	}
	return filepath.Join(dir, namespace), nil
}

// layoutDirectory names the directory of a layout among others. It is the same for
// all layouts that share their node numbers and ticks, and so can issue the same
// IDs, however they are written; and another for those whose cells make no sense to
// each other.
func layoutDirectory(l snowflake.Layout) string {
	fields := fmt.Sprintf("node%d-sequence%d", l.NodeBits, l.SequenceBits)
	// Where a field has no bits, the order makes no difference.
	if l.Order == snowflake.TimeSequenceNode && l.NodeBits > 0 && l.SequenceBits > 0 {
		fields = fmt.Sprintf("sequence%d-node%d", l.SequenceBits, l.NodeBits)
	}
	tick := strings.ReplaceAll(l.Tick.String(), "µ", "u")
	return fmt.Sprintf("%s-tick%s-epoch%s", fields, tick, l.Epoch.UTC().Format("20060102T150405.999999999Z"))
}

// storeURLError turns the complaint of a store about its URL into one about the flag.
func storeURLError(err error) error {
	if isA[*lease.URLError](err) {
		return &usageError{fmt.Errorf("--store: %w", err)}
	}
	return err
}

func isA[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}
