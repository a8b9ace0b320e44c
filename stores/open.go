package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/seam"
)

func init() { seam.SchemeOf = schemeOf }

// Opener opens a store by a URL of the scheme that it is registered for. It gets the
// whole URL, without the parameter forgetful. [Open] does not retry it: its error is
// final. So for a server that does not answer, it either returns a store whose methods
// fail, or waits for the server until ctx ends.
type Opener func(ctx context.Context, url string) (Store, error)

var registry = struct {
	sync.Mutex
	openers map[string]Opener
}{openers: make(map[string]Opener)}

// Register makes an engine known to [Open], under the scheme of its URLs in lower case.
// Engines call it when they are initialized. A later opener for the same scheme replaces
// the earlier one, which Register returns, so that the later one can wrap it; it is nil if there was none.
// The empty scheme is that of bare paths.
func Register(scheme string, open Opener) (earlier Opener) {
	registry.Lock()
	defer registry.Unlock()
	earlier, registry.openers[scheme] = registry.openers[scheme], open
	return earlier
}

const (
	consentName = "forgetful"
	consent     = consentName + "=allow"

	// attempt bounds an Open without a deadline.
	attempt = 10 * time.Second
	// slow is when Open logs that it still waits.
	slow = 2 * time.Second
)

// Option changes how [Open] opens a store.
type Option func(*config)

type config struct{ log *slog.Logger }

// WithLogger sets the logger of [Open], for what the store may lose and for a server that does not answer yet. The
// default is [slog.Default]. A nil logger is an [*OptionError] of Open.
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// Open opens a store. The scheme of the URL decides on the engine, among those that the
// program imports:
//
//	ids, ./ids, /var/lib/ids, file:ids     a directory   stores/directory
//	etcd://HOST:PORT, etcds:// with TLS    etcd          stores/etcd
//	zk://, zks://                          ZooKeeper     stores/zookeeper
//	postgres://, postgresql://             PostgreSQL    stores/postgres
//	mysql://                               MySQL         stores/mysql
//	redis://, rediss://                    Redis         stores/redis
//	nats://, tls://                        NATS          stores/nats
//	s3://BUCKET                            S3            stores/s3
//	k8s://NAMESPACE                        Kubernetes    stores/kubernetes
//
// The package of each engine documents the rest of its URLs, and the settings of the
// server that lose nothing. All URLs except bare paths have the option ?namespace=NAME,
// which separates fleets that share a server.
//
// A bare path must not look like a host whose scheme was forgotten: otherwise each machine
// would make its own directory and issue the IDs of the others. Nor may it look like the words of
// a driver (host=h user=u), or have a variable or quotes that a shell should have replaced or
// removed. So Open refuses a bare path
//
//   - with a colon, at sign, question mark, equals sign, dollar sign, quote or backquote, or with a
//     space at its beginning or end;
//   - with a comma or a parenthesis, unless it begins with a slash;
//   - whose first part contains a dot, or is "localhost" or a scheme, in capital letters or not,
//     unless it begins with a slash or a dot. Write ./a.b or file:a.b for such a directory.
//
// Open asks the server what it promises ([CheckDurability]). It refuses one that forgets
// acknowledged writes when it is killed and started again, or as it runs: the error wraps
// [ErrForgets] and says what to set. The option forgetful=allow of the URL accepts such a store, for
// tests: IDs are then issued twice after the server has stopped. Open logs once ([WithLogger]) which
// settings can lose writes in rarer events, which the server does not tell, and that it does not answer yet.
//
// While the server does not answer, Open tries again until the deadline of ctx. Without
// one, it tries once, for at most 10 seconds. It returns at most 1 second after ctx ends.
// The error is then the last one that the end of ctx has not caused, and also wraps that of ctx
// if ctx has ended. An error of a [Kind] other than Transient ends Open at once. The error of
// a URL that names no store is a [*URLError].
func Open(ctx context.Context, url string, options ...Option) (Store, error) {
	c := config{log: slog.Default()}
	for i, option := range options {
		if option == nil {
			return nil, &OptionError{Option: "Open", Err: fmt.Errorf("option %d of %d is nil: leave it out", i+1, len(options))}
		}
		option(&c)
	}
	if c.log == nil {
		return nil, &OptionError{Option: "WithLogger", Err: errors.New("logger is nil: give slog.New(slog.DiscardHandler) for silence")}
	}
	scheme, err := schemeOf(url)
	if err != nil {
		return nil, err
	}
	registry.Lock()
	open := registry.openers[scheme]
	registry.Unlock()
	if open == nil {
		return nil, unknown(scheme)
	}
	allowed := false
	if scheme != "" {
		if url, allowed, err = cutConsent(scheme, url); err != nil {
			return nil, err
		}
	}
	_, again := ctx.Deadline()
	if !again {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attempt)
		defer cancel()
	}
	var failed atomic.Pointer[error]
	failed.Store(new(errors.New("no answer")))
	ctx = pause.Logging(pause.Noting(ctx, &failed), c.log)
	defer time.AfterFunc(slow, func() {
		until, _ := ctx.Deadline()
		c.log.Warn("the store does not answer yet", "scheme", cmp.Or(scheme, "file"), "until", until, "err", *failed.Load())
	}).Stop()
	store, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	promises, err := ask(ctx, store, again)
	if err == nil {
		err = judge(c.log, scheme, promises, allowed)
	}
	if err != nil {
		_ = store.Close() // err says more
		return nil, err
	}
	return store, nil
}

// ask asks an engine for its settings, until it answers if again, else once.
func ask(ctx context.Context, store Store, again bool) (promises Durability, err error) {
	retry := func(err error) bool { return again && KindOf(err).Retryable() }
	err = pause.Retry(ctx, retry, func() (err error) {
		promises, err = CheckDurability(ctx, store)
		return err
	})
	return promises, err
}

// judge returns an error if a store must not be used, and logs its risks.
func judge(log *slog.Logger, scheme string, promises Durability, allowed bool) error {
	if len(promises.Forgets) > 0 && !allowed {
		return fmt.Errorf("%w: %s; %s in the URL accepts that IDs are then issued twice", ErrForgets, strings.Join(promises.Forgets, "; "), consent)
	}
	if risks := slices.Concat(promises.Forgets, promises.Risks, promises.Unknown); len(risks) > 0 {
		log.Warn("the store may lose acknowledged writes, and then IDs are issued twice",
			"scheme", cmp.Or(scheme, "file"), "risks", strings.Join(risks, "; "))
	}
	return nil
}

// schemeOf returns the scheme of a store's URL, in lower case, which is empty for a bare path.
// It knows no engine. The error is the [*URLError] of Open.
func schemeOf(url string) (string, error) {
	refuse := func(problem string) (string, error) { return "", &URLError{Problem: problem} }
	const noScheme = "it begins with no scheme; want a directory, such as ./ids, or SCHEME://HOST"
	if url == "" {
		return refuse("it is empty; want a directory, such as ./ids, or SCHEME://HOST")
	}
	if before, _, ok := strings.Cut(url, "://"); ok || strings.HasPrefix(strings.ToLower(url), "file:") {
		if !ok {
			before = "file"
		}
		scheme := strings.ToLower(before)
		if scheme == "" {
			return refuse(noScheme)
		}
		for i, r := range scheme {
			if (r < 'a' || r > 'z') && (i == 0 || (r < '0' || r > '9') && r != '+' && r != '.' && r != '-') {
				return refuse(noScheme)
			}
		}
		return scheme, nil
	}
	path := url
	if runtime.GOOS == "windows" {
		path = filepath.ToSlash(path[len(filepath.VolumeName(path)):])
	}
	first, _, _ := strings.Cut(path, "/")
	first = strings.ToLower(first)
	known := first != "" && engineOf(first) != ""
	switch {
	case strings.Contains(path, "?") && !strings.ContainsAny(path, ":@"):
		return refuse("it has no scheme, and a ?; want file:PATH?namespace=NAME for a directory, or SCHEME://HOST?namespace=NAME")
	case strings.ContainsAny(path, ":@\x00"), first != "" && strings.ContainsAny(path, ",()"), first != "" && (known || first == "localhost" || strings.Contains(first[1:], ".")) && first != "..":
		return refuse("it has no SCHEME://, and looks like a host; want SCHEME://HOST, such as etcd://localhost:2379, or file:PATH for a directory")
	case strings.TrimSpace(path) != path:
		return refuse("it has no scheme, and begins or ends with a space; want SCHEME://HOST, or file:PATH for a directory of such a name")
	case strings.ContainsAny(path, "=$'\"`"):
		return refuse("it has no scheme, and a = or a $ or quotes; want SCHEME://USER:PASSWORD@HOST, a directory in full and without quotes, or file:PATH for one of such a name")
	case first != "" && first[0] == '~':
		return refuse("~ stands for no directory here; want the path in full")
	}
	return "", nil
}

// unknown returns the error for a scheme that no engine is registered for.
func unknown(scheme string) error {
	if name := engineOf(scheme); name != "" {
		module := "github.com/tickflake/tickflake/stores/" + name
		problem := fmt.Sprintf("the program does not import the engine for %s URLs; add import _ %q", cmp.Or(scheme, "file"), module)
		if name != "directory" && name != "kubernetes" {
			problem += fmt.Sprintf(" and run go get %s, since it is a module of its own", module)
		}
		return &URLError{Scheme: scheme, Problem: problem}
	}
	return &URLError{Problem: fmt.Sprintf("unknown scheme %q; want file:PATH, or one of %s before ://", scheme, strings.Join(schemes()[1:], ", "))}
}

// cutConsent takes the option forgetful out of a URL.
func cutConsent(scheme, url string) (rest string, allowed bool, err error) {
	at := strings.LastIndexByte(url, '?')
	if at < 0 {
		return url, false, nil
	}
	options := strings.Split(url[at+1:], "&")
	others := slices.DeleteFunc(slices.Clone(options), func(option string) bool { return option == consent })
	for _, option := range others {
		if name, _, _ := strings.Cut(option, "="); name == consentName {
			return "", false, &URLError{Scheme: scheme, Problem: "option " + consentName + ": want " + consent}
		}
	}
	allowed = len(others) < len(options)
	return strings.TrimSuffix(url[:at+1]+strings.Join(others, "&"), "?"), allowed, nil
}

// ErrForgets is wrapped by the error of [Open] for a store that forgets acknowledged
// writes: see the field Forgets of [Durability].
var ErrForgets = Permanent.New("the store forgets acknowledged writes")

// engines are the engines of this project: the package, and its schemes. A new engine is one line here.
var engines = []struct{ name, schemes string }{
	{"directory", "file"},
	{"etcd", "etcd etcds"},
	{"zookeeper", "zk zks"},
	{"postgres", "postgres postgresql"},
	{"mysql", "mysql"},
	{"redis", "redis rediss"},
	{"nats", "nats tls"},
	{"s3", "s3"},
	{"kubernetes", "k8s"},
}

// schemes returns the schemes of the URLs of this project's engines, whether or not the program imports
// them. The first is file.
func schemes() (all []string) {
	for _, e := range engines {
		all = append(all, strings.Fields(e.schemes)...)
	}
	return all
}

// engineOf returns the name of the engine for a scheme, or "" if there is none. An empty scheme is that of
// bare paths.
func engineOf(scheme string) string {
	for _, e := range engines {
		if slices.Contains(strings.Fields(e.schemes), scheme) || scheme == "" {
			return e.name
		}
	}
	return ""
}
