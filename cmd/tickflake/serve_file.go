package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

// file is the configuration file of serve. Beside settings it has the clients, and the rules by
// which sequences are created.
type file struct {
	path     string
	warnings []string
	seen     string // the stamps of the files as they were before they were read
	looked   string // and at the last look

	Clients []clientEntry  `yaml:"clients,omitempty"`
	Create  []ruleEntry    `yaml:"create,omitempty"`
	Rest    map[string]any `yaml:",inline"`
}

// clientEntry is a client of the file.
type clientEntry struct {
	Name      string   `yaml:"name"`
	TokenHash string   `yaml:"token-hash,omitempty"`
	TokenFile string   `yaml:"token-file,omitempty"`
	Rate      *float64 `yaml:"rate,omitempty"`  // nil: no limit
	Burst     *int     `yaml:"burst,omitempty"` // nil: that of the rate
	IDs       *bool    `yaml:"ids,omitempty"`
	Sequences []string `yaml:"sequences,omitempty"`
	Metrics   bool     `yaml:"metrics,omitempty"`
	Open      int      `yaml:"max-sequences,omitempty"`
}

// ruleEntry is a rule of the file. Its names are those of the flags of "tickflake sequence create".
type ruleEntry struct {
	Prefix string `yaml:"prefix"`
	Mode   string `yaml:"mode,omitempty"`
	Start  *int64 `yaml:"start,omitempty"` // nil: 1
	Max    int64  `yaml:"max,omitempty"`
	Stride int64  `yaml:"stride,omitempty"`
	Offset int64  `yaml:"offset,omitempty"`
	Step   string `yaml:"step,omitempty"`
}

// typeOfField is in the package's error for a field that is not known, and says nothing to a reader.
var typeOfField = regexp.MustCompile(` not found in type \S+`)

// read reads the file, if there is one, and returns the values of settings.
func (f *file) read() (map[string]yaml.Node, error) {
	if f.path == "" {
		return nil, nil
	}
	f.seen = stamps(f.path)
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err = decoder.Decode(f); errors.Is(err, io.EOF) {
		return nil, nil // no line but comments
	}
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("want one document")
	}
	var keys map[string]yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &keys)
	}
	if _, given := keys["clients"]; err == nil && given && len(f.Clients) == 0 {
		err = errors.New("clients: there are none: leave the list out to serve everybody")
	}
	if err != nil {
		shown := err.Error()
		if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
			shown = typeOfField.ReplaceAllString(strings.Join(wrong.Errors, "; "), " is not known")
		}
		return nil, cli.Usage(fmt.Errorf("%s: %s", f.path, strings.TrimPrefix(shown, "yaml: ")))
	}
	delete(keys, "clients")
	delete(keys, "create")
	return keys, nil
}

// textsOf returns the text of a value, or the texts of a list.
func textsOf(n yaml.Node, list bool) (texts []string, err error) {
	nodes := []*yaml.Node{&n}
	if list && n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, node := range nodes {
		if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
			return nil, errors.New("want a value")
		}
		texts = append(texts, node.Value)
	}
	return texts, nil
}

// clients returns the clients, and reads their tokens.
func (f *file) clients() ([]service.Client, error) {
	f.seen += stamps(f.tokens()...)
	var clients []service.Client
	for _, c := range f.Clients {
		client := service.Client{Name: c.Name, TokenHash: c.TokenHash, NoIDs: c.IDs != nil && !*c.IDs, Sequences: c.Sequences, Metrics: c.Metrics, MaxSequences: c.Open}
		if c.Rate != nil {
			if client.Rate = *c.Rate; client.Rate == 0 {
				return nil, cli.Usage(fmt.Errorf("%s: client %s: rate: want above 0; leave it out for no limit", f.path, c.Name))
			}
		}
		if c.Burst != nil {
			if client.Burst = *c.Burst; client.Burst == 0 {
				return nil, cli.Usage(fmt.Errorf("%s: client %s: burst: want above 0; leave it out for the rate", f.path, c.Name))
			}
		}
		if c.TokenFile != "" {
			token, err := readToken(c.TokenFile)
			if err != nil {
				return nil, fmt.Errorf("%s: client %s: token-file: %w", f.path, c.Name, err)
			}
			client.Token = token
			f.warnOfReaders(c.TokenFile, "it holds a token")
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// tokens are the files of tokens.
func (f *file) tokens() (paths []string) {
	for _, c := range f.Clients {
		if c.TokenFile != "" {
			paths = append(paths, c.TokenFile)
		}
	}
	return paths
}

// stamps tell whether files have changed. A link is followed, as in a Kubernetes secret.
func stamps(paths ...string) (all string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			all += fmt.Sprintln(err)
			continue
		}
		all += fmt.Sprintln(info.ModTime().UnixNano(), info.Size())
	}
	return all
}

// changed reports at a look whether files have changed since they were read, and not since the look before:
// half a list of clients may be a list, too.
func (f *file) changed() bool {
	before := f.looked
	f.looked = stamps(append([]string{f.path}, f.tokens()...)...)
	return f.looked == before && f.looked != f.seen
}

// lookEvery is how often follow looks at the files.
const lookEvery = 2 * time.Second

// follow reads the clients anew at each signal of asked, and when the file or one with a token has changed. Where
// there are no clients it warns at the signal: to reload harms nothing. It returns when ended is closed.
func (f file) follow(log *slog.Logger, running *service.Server, asked <-chan os.Signal, ended <-chan struct{}) {
	none := len(f.Clients) == 0 // which no later file changes
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return
		case <-asked:
			if none {
				log.Warn("SIGHUP: the server has no clients that could be read anew: restart it for other settings")
				continue
			}
		case <-look.C:
			if none || !f.changed() {
				continue
			}
		}
		next := file{path: f.path}
		err := running.ReloadClients(func() ([]service.Client, error) {
			if _, err := next.read(); err != nil {
				next.Clients = nil
				return nil, err
			}
			return next.clients()
		})
		for _, warning := range next.warnings {
			log.Warn(warning)
		}
		if err != nil {
			next.Create, next.Rest = f.Create, f.Rest
		} else if !reflect.DeepEqual([]any{f.Create, f.Rest}, []any{next.Create, next.Rest}) {
			log.Warn("only the clients are read anew: restart the server for what else has changed in its file", "file", f.path)
		}
		f = next
	}
}

// rules returns the rules by which sequences are created.
func (f *file) rules() ([]service.Create, error) {
	var rules []service.Create
	for _, entry := range f.Create {
		d := sequence.Definition{Mode: sequence.Mode(entry.Mode), Start: 1, Max: entry.Max}
		var err error
		if entry.Start != nil {
			d.Start = *entry.Start
		}
		if entry.Stride != 0 || entry.Offset != 0 {
			d.Stride = sequence.Every(entry.Stride, entry.Offset)
		}
		if entry.Step != "" {
			var step steps
			if step, err = parseSteps(entry.Step); err != nil {
				err = fmt.Errorf("step: %w", err)
			} else if d.Mode == sequence.Ordered {
				err = errors.New("an ordered sequence has no steps: leave step out")
			}
			d.MinStep, d.MaxStep = step.least, step.most
		}
		switch {
		case err != nil:
		case entry.Prefix == "":
			err = errors.New("want a prefix")
		default:
			err = d.Check()
		}
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: create: of %q: %w", f.path, entry.Prefix, err))
		}
		rules = append(rules, service.Create{Prefix: entry.Prefix, Definition: d})
	}
	return rules, nil
}

// maxToken is the longest token file.
const maxToken = 4096

func readToken(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(command.Text(io.LimitReader(in, maxToken+1)))
	if err != nil {
		return "", err
	}
	if len(text) > maxToken {
		return "", fmt.Errorf("%s has more than %d bytes: want a token", path, maxToken)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// warnOfReaders notes that every user of this machine can read a file with a secret.
func (f *file) warnOfReaders(path, why string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("every user can read %s, and %s: chmod o-r", path, why))
	}
}

const serveTokenHelp = `Make a token for a client of 'tickflake serve', and print it with its hash. Give the
token to the client, as a password. Put the hash into the file of --config:

  clients:
    - name: shop
      token-hash: …

The token has at least 128 random bits. It is not kept anywhere.`

func newServeToken(c *command.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "token",
		Short:   "Make a token for a client, and print it with its hash",
		Long:    serveTokenHelp,
		Example: "  tickflake serve token",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token := rand.Text()
			sum := sha256.Sum256([]byte(token))
			_, err := fmt.Fprintf(c.Out, "token       %s\ntoken-hash  %s\n", token, hex.EncodeToString(sum[:]))
			return err
		},
	}
}
