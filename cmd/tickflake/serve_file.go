package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

// file is the configuration file of serve: the clients, and the rules by which sequences are created. All else is a
// setting.
type file struct {
	path     string
	warnings []string

	Clients []clientEntry `yaml:"clients"`
	Create  []ruleEntry   `yaml:"create"`
}

// clientEntry is a client of the file.
type clientEntry struct {
	Name        string   `yaml:"name"`
	TokenHash   texts    `yaml:"token-hash"`
	TokenFile   texts    `yaml:"token-file"`
	Rate        *float64 `yaml:"rate"`  // nil: no limit
	Burst       count    `yaml:"burst"` // 0: that of the rate
	IDs         *bool    `yaml:"ids"`
	Sequences   []string `yaml:"sequences"`
	Metrics     bool     `yaml:"metrics"`
	Open        count    `yaml:"max-sequences"`
	Connections count    `yaml:"max-connections"`
}

// ruleEntry is a rule of the file. Its names are those of the flags of "tickflake sequence create".
type ruleEntry struct {
	Prefix string `yaml:"prefix"`
	Mode   string `yaml:"mode"`
	Start  *int64 `yaml:"start"` // nil: 1
	Max    count  `yaml:"max"`
	Stride count  `yaml:"stride"`
	Offset int64  `yaml:"offset"`
	Step   string `yaml:"step"`
}

// clients loads the file, and adds it to those that are watched: once the server runs, its clients are read anew when the file
// or one with a token has changed. Where there are no clients, it warns: to reload harms nothing.
func (s *serving) clients(ctx context.Context, log *slog.Logger) (clients []service.Client, err error) {
	rules, none := []ruleEntry(nil), false
	s.files.Add(ctx, func(read service.ReadFile) func() {
		next := file{path: s.file.path}
		found, failed := next.load(read, s.has)
		return func() {
			switch {
			case s.running == nil:
				s.file, clients, err = next, found, failed
				rules, none = next.Create, len(next.Clients) == 0
				return
			case none: // which no later file changes
				log.Warn("the server has no clients that could be read anew: restart it for other settings")
				return
			}
			for _, warning := range next.warnings {
				log.Warn(warning)
			}
			if s.running.ReloadClients(func() ([]service.Client, error) { return found, failed }) == nil && !reflect.DeepEqual(rules, next.Create) {
				rules = next.Create
				log.Warn("only the clients are read anew: restart the server for other rules", "file", next.path)
			}
		}
	})()
	return clients, err
}

// load reads the file, if there is one, and the tokens of its clients.
func (f *file) load(read service.ReadFile, isSetting func(name string) bool) ([]service.Client, error) {
	if f.path == "" {
		return nil, nil
	}
	text, _, err := read(f.path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if err := f.parse(text, isSetting); err != nil {
		return nil, err
	}
	var clients []service.Client
	for _, c := range f.Clients {
		client := service.Client{
			Name: c.Name, TokenHashes: c.TokenHash, NoIDs: c.IDs != nil && !*c.IDs, Sequences: c.Sequences, Metrics: c.Metrics,
			Burst: int(c.Burst), MaxSequences: int(c.Open), MaxConnections: int(c.Connections),
		}
		if c.Rate != nil {
			if client.Rate = *c.Rate; client.Rate == 0 {
				return nil, cli.Usage(fmt.Errorf("%s: client %q: rate: want above 0; leave it out for no limit", f.path, c.Name))
			}
		}
		for _, path := range c.TokenFile {
			token, mode, err := read(path)
			if err != nil {
				return nil, fmt.Errorf("%s: client %q: token-file: %w", f.path, c.Name, err)
			}
			client.Tokens = append(client.Tokens, strings.TrimRight(string(token), "\r\n"))
			f.warnOfReaders(path, mode, "it holds a token")
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// parse reads the text of the file. A key that is a setting is refused by name: a server that did not see its store
// would take one of its own, and issue the IDs of another server.
func (f *file) parse(text []byte, isSetting func(name string) bool) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var keys map[string]yaml.Node
	err := yaml.Unmarshal(text, &keys)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if err == nil && isSetting(name) {
			err = fmt.Errorf("%s is a setting, and the file has clients and create: give it as --%s, or as $%s", name, name, variable(name))
		}
	}
	if err == nil {
		if err = decoder.Decode(f); errors.Is(err, io.EOF) {
			return nil // no line but comments
		}
	}
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("want one document")
	}
	if _, given := keys["clients"]; err == nil && given && len(f.Clients) == 0 {
		err = errors.New("clients: there are none: leave the list out to serve everybody")
	}
	if err != nil {
		shown := err.Error()
		if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
			shown = typeOfField.ReplaceAllString(strings.Join(wrong.Errors, "; "), " is not known (docs/service.md has the fields)")
		}
		return cli.Usage(fmt.Errorf("%s: %s", f.path, strings.TrimPrefix(shown, "yaml: ")))
	}
	return nil
}

// typeOfField is in the package's error for a field that is not known, and says nothing to a reader.
var typeOfField = regexp.MustCompile(` not found in type \S+`)

// texts is a text, or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// count is a whole number from 1 on, or 0 where none is given.
type count int64

func (c *count) UnmarshalYAML(n *yaml.Node) error {
	var value int64
	if n.ShortTag() != "!!int" || n.Decode(&value) != nil || value < 1 {
		return fmt.Errorf("line %d: want a whole number from 1 on, got %q; leave it out for the default", n.Line, n.Value)
	}
	*c = count(value)
	return nil
}

// warnOfReaders notes that every user of this machine can read a file with a secret.
func (f *file) warnOfReaders(path string, mode os.FileMode, why string) {
	if mode.Perm()&0o004 != 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("every user can read %s, and %s: chmod o-r", path, why))
	}
}

// rules returns the rules by which sequences are created.
func (f *file) rules() ([]service.CreateRule, error) {
	var rules []service.CreateRule
	for _, entry := range f.Create {
		d := sequence.Definition{Mode: sequence.Mode(entry.Mode), Max: int64(entry.Max)}
		var err error
		if entry.Start != nil {
			d.Start, d.FromZero = *entry.Start, *entry.Start == 0
		}
		if entry.Stride > 0 || entry.Offset != 0 {
			d.Stride = sequence.Every(int64(entry.Stride), entry.Offset)
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
			err = d.Validate()
		}
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: create: of %q: %w", f.path, entry.Prefix, err))
		}
		rules = append(rules, service.CreateRule{Prefix: entry.Prefix, Definition: d})
	}
	return rules, nil
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
