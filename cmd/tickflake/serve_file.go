package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/service"
)

// file is the configuration file of serve.
type file struct {
	path     string
	clients  []clientEntry
	warnings []string
}

// clientEntry is a client of the file.
type clientEntry struct {
	Name      string   `yaml:"name"`
	TokenHash string   `yaml:"token-hash,omitempty"`
	TokenFile string   `yaml:"token-file,omitempty"`
	Rate      float64  `yaml:"rate,omitempty"`
	Burst     int64    `yaml:"burst,omitempty"`
	IDs       *bool    `yaml:"ids,omitempty"`
	Sequences []string `yaml:"sequences,omitempty"`

	at string // FILE:LINE
}

// yamlLine is how the parser begins an error.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// read reads the file. find returns the setting of a name, and whether a flag or a variable
// has set it.
func (f *file) read(find func(string) (*setting, bool)) error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // no line but comments
		return nil
	case err != nil:
		return f.syntax(err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return f.bad(&second, "want one document, got a second one")
	case !errors.Is(err, io.EOF):
		return f.syntax(err)
	}
	root := document.Content[0]
	if root.Tag == "!!null" {
		return nil
	}
	return f.mapping(root, func(key string, value *yaml.Node) error {
		if key == "clients" {
			return f.readClients(value)
		}
		one, taken := find(key)
		if one == nil {
			return f.bad(value, "unknown setting %q: 'tickflake serve --print-config' shows all", key)
		}
		texts, err := f.texts(key, value, one.list)
		if err != nil {
			return err
		}
		if taken {
			return nil
		}
		if key == "store" && hasSecret(texts[0]) {
			f.warnOfReaders(f.path, "it holds the password of the store")
		}
		return one.take(fmt.Sprintf("%s: %s", f.at(value), key), texts)
	})
}

func (f *file) syntax(err error) error {
	text := yamlLine.ReplaceAllString(err.Error(), f.path+":$1: ")
	return cli.Usage(errors.New(strings.Replace(text, "yaml: ", f.path+": ", 1)))
}

func (f *file) at(n *yaml.Node) string { return f.path + ":" + strconv.Itoa(n.Line) }

func (f *file) bad(n *yaml.Node, format string, args ...any) error {
	return cli.Usage(fmt.Errorf("%s: %w", f.at(n), fmt.Errorf(format, args...)))
}

// mapping calls each for the keys of a mapping, in their order.
func (f *file) mapping(n *yaml.Node, each func(key string, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.bad(n, "want lines of the form NAME: VALUE")
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			return f.bad(key, "%s is there twice", key.Value)
		}
		seen[key.Value] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := each(key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the text of a value, or the texts of a list.
func (f *file) texts(key string, n *yaml.Node, list bool) ([]string, error) {
	nodes := []*yaml.Node{n}
	if list && n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	var texts []string
	for _, node := range nodes {
		if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
			return nil, f.bad(node, "%s: want a value", key)
		}
		texts = append(texts, node.Value)
	}
	return texts, nil
}

func (f *file) readClients(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return f.bad(n, "clients: want a list")
	}
	if len(n.Content) == 0 {
		return f.bad(n, "clients: the list is empty: leave it out to serve everybody")
	}
	for _, node := range n.Content {
		c := clientEntry{at: f.at(node)}
		if err := f.mapping(node, func(key string, value *yaml.Node) error { return f.readClient(&c, key, value) }); err != nil {
			return err
		}
		switch {
		case c.Name == "":
			return f.bad(node, "a client without a name")
		case (c.TokenHash == "") == (c.TokenFile == ""):
			return f.bad(node, "client %s: want either token-hash or token-file; 'tickflake serve token' makes a token", c.Name)
		}
		f.clients = append(f.clients, c)
	}
	return nil
}

// readClient reads one field of a client.
func (f *file) readClient(c *clientEntry, key string, value *yaml.Node) (err error) {
	texts, err := f.texts(key, value, key == "sequences")
	if err != nil {
		return err
	}
	text := strings.Join(texts, " ")
	switch key {
	case "name":
		c.Name = text
	case "token-hash":
		c.TokenHash = text
	case "token-file":
		c.TokenFile = text
	case "rate":
		if c.Rate, err = strconv.ParseFloat(text, 64); err != nil || !(c.Rate > 0 && c.Rate <= 1e12) {
			err = fmt.Errorf("want IDs and numbers per second, above 0, got %q", text)
		}
	case "burst":
		if c.Burst, err = wholeNumber(text); err == nil && (c.Burst < 1 || c.Burst > 1e9) {
			err = fmt.Errorf("want 1 to 1000000000, got %d", c.Burst)
		}
	case "ids":
		ids := text == "true"
		if c.IDs = &ids; !ids && text != "false" {
			err = fmt.Errorf("want true or false, got %q", text)
		}
	case "sequences":
		c.Sequences = texts
	default:
		return f.bad(value, "unknown field %q of a client: want name, token-hash, token-file, rate, burst, ids or sequences", key)
	}
	if err != nil {
		return f.bad(value, "%s: %w", key, err)
	}
	return nil
}

// maxToken is the longest token file.
const maxToken = 4096

// open returns the clients, and reads their tokens.
func (f *file) open() ([]service.Client, error) {
	var clients []service.Client
	for _, c := range f.clients {
		client := service.Client{Name: c.Name, TokenHash: c.TokenHash, Rate: c.Rate, Burst: int(c.Burst), NoIDs: c.IDs != nil && !*c.IDs, Sequences: c.Sequences}
		if c.TokenFile != "" {
			token, err := readToken(c.TokenFile)
			if err != nil {
				return nil, fmt.Errorf("%s: client %s: token-file: %w", c.at, c.Name, err)
			}
			client.Token = token
			f.warnOfReaders(c.TokenFile, "it holds a token")
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func readToken(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(in, maxToken+1))
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
