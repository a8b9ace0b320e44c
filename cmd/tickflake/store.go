package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/engine"
	_ "github.com/tickflake/tickflake/stores/etcd"
	_ "github.com/tickflake/tickflake/stores/kubernetes"
	_ "github.com/tickflake/tickflake/stores/mysql"
	_ "github.com/tickflake/tickflake/stores/nats"
	_ "github.com/tickflake/tickflake/stores/postgres"
	_ "github.com/tickflake/tickflake/stores/redis"
	_ "github.com/tickflake/tickflake/stores/s3"
	_ "github.com/tickflake/tickflake/stores/zookeeper"
)

// storeVariable is the environment variable that stands in for --store. It keeps a
// password out of the list of processes.
const storeVariable = "TICKFLAKE_STORE"

const storesHelp = `Stores: --store, or else $` + storeVariable + `, is a directory for the processes of one
host, or the URL of a store that several hosts share:

  ./ids, /var/lib/ids, file:DIR  a directory
  etcd://HOST:PORT               etcds:// with TLS
  zk://HOST:PORT                 zks:// with TLS
  postgres://USER:PASSWORD@HOST:PORT/DATABASE
  mysql://USER:PASSWORD@HOST:PORT/DATABASE
  redis://HOST:PORT              rediss:// with TLS
  nats://HOST:PORT               tls:// with TLS
  s3://BUCKET/PREFIX             credentials as for every S3 client
  k8s://NAMESPACE                in a pod, or by kubectl proxy

?namespace=NAME at the end of a URL separates fleets that share a store. The packages
under stores/ document all options of their URLs. A store that forgets acknowledged
writes when its server is killed is refused; see 'tickflake store check'.

The default is the per-user state directory, $XDG_STATE_HOME/tickflake or
~/.local/state/tickflake (macOS: ~/Library/Application Support/tickflake, Windows:
%LocalAppData%\tickflake). `

const nodeStoresHelp = storesHelp + `In it, each layout has a directory of its own.
Any other store holds the node numbers of one layout and refuses others.`

const sequenceStoresHelp = storesHelp + `In it, sequences have the directory ` + sequenceDirectory + `.
Any other store can hold sequences beside node numbers.`

// sequenceDirectory is the directory of the sequences in the per-user state directory.
const sequenceDirectory = "sequences"

// place is the store of the flags.
type place struct {
	kept
	url     string // empty for the per-user state directory
	source  string // of the URL, for messages: the flag or the variable
	timeout time.Duration
	makes   bool // a directory that is missing; other commands only look
	accepts bool // a store that forgets writes
	// directory returns the place in the per-user state directory, once the flags are parsed.
	directory func() string
}

// kept names the things that a command keeps in a store.
type kept struct {
	what, toWait, see string // for the texts of the flags
	never, remedy     string // for the error of a store that is not there
}

var (
	keptNodes     = kept{"node numbers", "the store and for a node number", "above", "no node number was ever claimed here", "check --store"}
	keptCells     = kept{"node numbers or sequences", "the store", "'tickflake store --help'", "no store was ever used here", "check --store"}
	keptSequences = kept{"sequences", "the store", "'tickflake sequence --help'", "no sequence is kept here", "create a sequence, or check --store"}
)

// placeFlags adds --store and --timeout.
func placeFlags(cmd *cobra.Command, k kept, directory func() string) *place {
	p := &place{kept: k, directory: directory, url: os.Getenv(storeVariable), source: "$" + storeVariable, timeout: defaultTimeout}
	usage := "use the store at `URL`, which keeps " + k.what + ", or a directory, see " + k.see + " (default $" + storeVariable + ", or else the per-user state directory)"
	command.Flag(cmd, "store", usage, &p.url, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("want a directory or a URL")
		}
		p.source = "--store"
		return s, nil
	})
	durationFlag(cmd, "timeout", "wait at most `DURATION` for "+k.toWait, &p.timeout)
	return p
}

// defaultTimeout is that of --timeout; a variable for our own tests, whose disk may be slow.
var defaultTimeout = 5 * time.Second

// list returns the things of the store that f lists, and the errors of damaged cells apart. If there is nothing, it says so.
func list[T any](ctx context.Context, c *command.Console, p *place, f func(context.Context, stores.Store) ([]T, error)) (all []T, damaged []*stores.DamagedError, err error) {
	all, err = ask(ctx, p, f)
	if damaged = drive.DamagedCells(err); len(damaged) > 0 {
		err = nil
	} else if err == nil && len(all) == 0 {
		c.Complain(fmt.Errorf("%s, in %s: %s", p.never, p.name(), p.remedy))
	}
	return all, damaged, err
}

// ask is [place.with] for an answer.
func ask[T any](ctx context.Context, p *place, f func(context.Context, stores.Store) (T, error)) (answer T, err error) {
	err = p.with(ctx, func(ctx context.Context, store stores.Store) (err error) {
		answer, err = f(ctx, store)
		return err
	})
	return answer, err
}

// with opens the store and calls f, within --timeout. If that fails, no directory is left that it made and f did not use.
func (p *place) with(ctx context.Context, f func(context.Context, stores.Store) error) error {
	bounded, cancel := p.within(ctx)
	defer cancel()
	made := ""
	if p.makes {
		made, _ = p.missing(bounded)
	}
	store, err := p.open(bounded)
	if err == nil {
		err = f(bounded, store)
		_ = store.Close() // every write of f is complete
	}
	if err != nil && made != "" {
		_ = os.Remove(made) // unless it has cells
	}
	return p.ended(ctx, bounded, err)
}

// within bounds ctx by --timeout.
func (p *place) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.timeout)
}

// open opens the store.
func (p *place) open(ctx context.Context) (stores.Store, error) {
	full, err := p.openable(ctx)
	if err != nil {
		return nil, err
	}
	store, err := stores.Open(ctx, full)
	if err != nil && p.url == "" {
		return nil, p.elsewhere(err)
	}
	return store, p.urlError(err)
}

// openable is the URL to open. The error says that there is no such directory.
func (p *place) openable(ctx context.Context) (full string, err error) {
	if !p.makes {
		if path, err := p.missing(ctx); err != nil {
			return "", err
		} else if path != "" {
			return "", &missingError{p.kept, path}
		}
	}
	switch full = p.url; {
	case full == "":
		path, err := p.defaultPath()
		if err != nil {
			return "", p.elsewhere(err)
		}
		return "file:" + path, nil
	case p.accepts && strings.Contains(full, "?"):
		full += "&forgetful=allow"
	case p.accepts && strings.Contains(full, "://"):
		full += "?forgetful=allow"
	}
	return full, nil
}

// missing returns the path of the store if it is a directory that does not exist, or
// else "". The error says that the disk hung until ctx ended.
func (p *place) missing(ctx context.Context) (string, error) {
	path := p.url
	scheme, err := seam.SchemeOf(path)
	switch {
	case path == "":
		path, err = p.defaultPath()
	case scheme == "file":
		path, err = seam.PathOf(path)
	case scheme != "":
		return "", nil
	}
	if err != nil {
		return "", nil // the error of stores.Open says more
	}
	found, err := engine.Wait(ctx, func() (bool, error) {
		_, err := os.Stat(path)
		return !errors.Is(err, os.ErrNotExist), nil
	})
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", path, err)
	}
	if found {
		path = ""
	}
	return path, nil
}

// missingError is the error of a store whose directory does not exist.
type missingError struct {
	kept
	path string
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%s: there is no directory %s: %s", e.never, e.path, e.remedy)
}

func (p *place) defaultPath() (string, error) {
	base, err := directory.DefaultPath()
	return filepath.Join(base, p.directory()), err
}

// layoutDirectory names the directory of a layout. Layouts that can issue the same IDs,
// since they share node numbers and ticks, share a directory; other layouts do not.
func layoutDirectory(l snowflake.Layout) string {
	fields := fmt.Sprintf("node%d-sequence%d", l.NodeBits, l.SequenceBits)
	// Where a field has no bits, the order makes no difference.
	if l.Order == snowflake.TimeSequenceNode && l.NodeBits > 0 && l.SequenceBits > 0 {
		fields = fmt.Sprintf("sequence%d-node%d", l.SequenceBits, l.NodeBits)
	}
	tick := strings.ReplaceAll(l.Tick.String(), "µ", "u")
	return fmt.Sprintf("%s-tick%s-epoch%s", fields, tick, l.Epoch.UTC().Format("20060102T150405.999999999Z"))
}

// name returns the store's URL without user, password and options, or its directory.
func (p *place) name() string {
	if p.url == "" {
		path, _ := p.defaultPath()
		return path
	}
	return publicName(absolute(p.url))
}

// absolute returns the URL of a store, or a directory as it is named from everywhere.
func absolute(store string) string {
	if scheme, err := seam.SchemeOf(store); err == nil && scheme == "" {
		if path, err := filepath.Abs(store); err == nil {
			return path
		}
	}
	return store
}

// publicName returns a URL without user, password and options, but with its namespace in words: that
// tells two fleets of one server apart. It is "?" if a password may begin before the options.
func publicName(store string) string {
	name, options, _ := strings.Cut(store, "?")
	if strings.Contains(options, "@") {
		return "?"
	}
	if scheme, rest, ok := strings.Cut(name, "://"); ok {
		name = scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	query, _ := url.ParseQuery(options)
	if namespace := query.Get("namespace"); stores.CheckNamespace(namespace) == nil {
		name += ", namespace " + namespace
	}
	return name
}

// ended returns an error of work within bounded, which [place.within] made of ctx: the cause of
// the end of ctx, if it has ended, a [lateError] if the time is over, or that of [flagError].
func (p *place) ended(ctx, bounded context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx) // a signal
	case bounded.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return &lateError{p.timeout, err}
	}
	return flagError(err)
}

// lateError is an error of work that --timeout ended.
type lateError struct {
	after time.Duration
	err   error
}

// Error says first that the time is over, and once: drivers repeat it anywhere in their errors.
func (e *lateError) Error() string {
	text, over := e.err.Error(), context.DeadlineExceeded.Error()
	text = strings.ReplaceAll(strings.ReplaceAll(text, over+": ", ""), ": "+over, "")
	late := fmt.Sprintf("gave up after %s (--timeout)", e.after)
	if text == over {
		return late
	}
	return late + ": " + text
}

func (e *lateError) Unwrap() error { return e.err }

func (*place) elsewhere(err error) error {
	return fmt.Errorf("%w; --store names another directory or a store", err)
}

// urlError turns the error of a URL that names no store into a usage error.
func (p *place) urlError(err error) error {
	if isA[*stores.URLError](err) {
		return cli.Usage(fmt.Errorf("%s: %w", p.source, err))
	}
	return err
}

// flagError turns the error of an option or an argument of the library into a usage error that names its
// flag. A layout is no usage error: the clock decides whether its time is over.
func flagError(err error) error {
	refused, ok := errors.AsType[*stores.OptionError](err)
	if !ok {
		return err
	}
	switch flag := map[string]string{
		"WithLayout": "layout", "WithNode": "node", "WithSequenceStart": "sequence-start", "WithTimeout": "timeout",
		"WithVMClock": "vmclock", "WithWindow": "window", "Next": "next", "n": "count",
	}[refused.Option]; flag {
	case "":
		return cli.Usage(refused.Err)
	case "layout":
		return fmt.Errorf("--layout: %w", refused.Err)
	default:
		return cli.Usage(fmt.Errorf("--%s: %w", flag, refused.Err))
	}
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

func newStore(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check a store, whether it has node numbers or sequences",
		Long: `Check a store, whether it has node numbers or sequences.

` + storesHelp + "A directory there is checked as a whole.",
	}
	cmd.AddCommand(newStoreCheck(c))
	return cmd
}

const storeCheckHelp = `Ask the store's server which of its settings can lose acknowledged writes. After
such a loss, IDs and numbers are issued twice.

  forgets   when the server is killed and started again, or as it runs: tickflake
            refuses the store
  risks     in rarer events: loss of power, a failover
  unknown   the server does not say

A server of S3 is also probed: of several conditional writes at once, one must
succeed.

Each line names a setting and what to set. The exit code is 1 if the store forgets.`

func newStoreCheck(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a store can lose acknowledged writes",
		Long:  storeCheckHelp,
		Example: `  tickflake store check --store redis://10.0.0.1
  TICKFLAKE_STORE=postgres://ids:secret@db.example.com/ids tickflake store check`,
		Args: cobra.NoArgs,
	}
	place := placeFlags(cmd, keptCells, func() string { return "" })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		slog.SetDefault(slog.New(slog.DiscardHandler)) // stores.Open logs the same
		place.accepts = true
		probed := ""
		d, err := ask(ctx, place, func(ctx context.Context, store stores.Store) (stores.Durability, error) {
			d, err := stores.CheckDurability(ctx, store)
			if probe := store.Traits().Probe; err == nil && probe != nil {
				begin := time.Now()
				err = probe(ctx, true)
				probed = fmt.Sprintf("writes succeed and fail as promised, in %v", time.Since(begin).Round(time.Millisecond))
			}
			return d, err
		})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, part := range []struct {
			word      string
			sentences []string
		}{{"forgets", d.Forgets}, {"risks", d.Risks}, {"unknown", d.Unknown}} {
			for _, sentence := range part.sentences {
				rows = append(rows, []string{part.word, command.Visible(sentence)})
			}
		}
		if probed != "" {
			rows = append(rows, []string{"probed", probed})
		}
		if err := command.Table(c.Out, nil, rows); err != nil {
			return err
		}
		switch {
		case len(d.Forgets) > 0:
			return command.ErrReported
		case len(d.Risks)+len(d.Unknown) == 0:
			_, err = fmt.Fprintf(c.Out, "%s: no setting is known to lose acknowledged writes\n", command.Visible(place.name()))
		}
		return err
	}
	return cmd
}
