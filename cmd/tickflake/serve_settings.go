package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
)

// off is the address of a protocol that is not served.
const off = "off"

// ownSettings are those that the command has beside service.Config, which has the same tags.
type ownSettings struct {
	RESP        string `setting:"resp" default:"127.0.0.1:6380" value:"ADDRESS" usage:"at which to serve the Redis protocol, as HOST:PORT, or off; port 0 is any that is free"`
	HTTP        string `setting:"http" default:"127.0.0.1:8380" value:"ADDRESS" usage:"at which to serve HTTP"`
	GRPC        string `setting:"grpc" default:"127.0.0.1:9380" value:"ADDRESS" usage:"at which to serve gRPC"`
	Probes      string `setting:"probes" default:"off" value:"ADDRESS" usage:"at which to serve /livez and /readyz alone, over HTTP without TLS"`
	TLSCert     string `setting:"tls-cert" value:"FILE" usage:"of the certificate, as PEM: clients must use TLS; read again when it changes"`
	TLSKey      string `setting:"tls-key" value:"FILE" usage:"of the certificate's key, as PEM"`
	TLSClientCA string `setting:"tls-client-ca" value:"FILE" usage:"of authorities, as PEM: clients must have a certificate of one of them"`
}

// setting is one value of the configuration of serve. Its flag, its variable and its key in
// the file take the same text.
type setting struct {
	*pflag.Flag
	text   func() []string // the present value; nothing if there is none
	list   bool
	source string // of the value, for messages
}

// variable returns the name of the environment variable of a flag.
func variable(flag string) string {
	return "TICKFLAKE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settings is the table of them, in the order of the help. It drives the flags, the
// variables, the file and --print-config.
type settings struct {
	cmd *cobra.Command
	all []*setting
}

// keep makes a setting of a flag that was just added.
func (s *settings) keep(name string) *setting {
	one := &setting{Flag: s.cmd.Flags().Lookup(name), source: "--" + name}
	one.text = func() []string {
		if text := one.Value.String(); text != "" {
			return []string{text}
		}
		return nil
	}
	s.all = append(s.all, one)
	return one
}

// keepAll makes settings of the flags that were added since.
func (s *settings) keepAll() {
	s.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if s.find(f.Name) == nil {
			s.keep(f.Name)
		}
	})
}

// fields makes a setting of each field of a struct that has the tag "setting". The range is that of the
// service, but for a least value above 0: a 0 would be the default there.
func (s *settings) fields(of any) {
	fields := reflect.ValueOf(of).Elem()
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		if tag.Get("setting") == "" {
			continue
		}
		number := atLeast(tag.Get("least"), wholeNumber)
		switch value := fields.Field(i).Addr().Interface().(type) {
		case *bool:
			field(s, tag, "", value, yesOrNo).NoOptDefVal = "true"
		case *time.Duration:
			field(s, tag, "DURATION", value, atLeast(tag.Get("least"), duration))
		case *int64:
			field(s, tag, "N", value, number)
		case *int:
			field(s, tag, "N", value, func(text string) (int, error) {
				n, err := number(text)
				return int(n), err
			})
		case *string:
			parse := someText
			if tag.Get("value") == addressName {
				parse = address
			}
			field(s, tag, tag.Get("value"), value, parse)
		case *[]string:
			one := field(s, tag, tag.Get("value"), value, func(text string) ([]string, error) {
				_, err := someText(text)
				return append(*value, text), err
			})
			one.list, one.text = true, func() []string { return *value }
		}
	}
}

// field makes a setting of a field, whose value has a name in the help.
func field[T any](s *settings, tag reflect.StructTag, name string, value *T, parse func(string) (T, error)) *setting {
	usage, flag := tag.Get("usage"), tag.Get("setting")
	if name != "" {
		usage = "`" + name + "` " + usage
	}
	if text := tag.Get("default"); text != "" {
		var err error
		if *value, err = parse(text); err != nil {
			panic(err) // a bug: the tags are constants
		}
	}
	if text := fmt.Sprint(*value); text != "" && text != "false" && text != "[]" {
		usage += " (default " + text + ")"
	}
	command.Var(s.cmd, flag, usage, value, parse)
	if name == addressName {
		command.CompleteFlag(s.cmd, flag, off)
	} else if name != "FILE" {
		command.CompleteFlag(s.cmd, flag)
	}
	return s.keep(flag)
}

func yesOrNo(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("want true or false, got %q", text)
	}
	return text == "true", nil
}

// addressName is the name of a value that is an address.
const addressName = "ADDRESS"

func address(text string) (string, error) {
	if _, _, err := net.SplitHostPort(text); err != nil && text != off {
		return "", fmt.Errorf("want HOST:PORT or off, got %q", text)
	}
	return text, nil
}

func someText(text string) (string, error) {
	if text == "" {
		return "", errors.New("want a text, got none")
	}
	return text, nil
}

// find returns the setting of a name, or nil.
func (s *settings) find(name string) *setting {
	for _, one := range s.all {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// source returns where the value of a setting came from, for messages.
func (s *settings) source(name string) string {
	if one := s.find(name); one != nil {
		return one.source
	}
	return name
}

// fill sets the settings that have no flag from their variables, and the rest from the file,
// if there is one.
func (s *settings) fill(f *file) error {
	values, err := f.read()
	if err != nil {
		return err
	}
	for _, one := range s.all {
		node, inFile := values[one.Name]
		delete(values, one.Name)
		text := os.Getenv(variable(one.Name))
		switch {
		case one.Changed:
			continue
		case text != "":
			texts := []string{text}
			if one.list {
				texts = strings.Fields(text)
			}
			err = one.take("$"+variable(one.Name), texts)
		case inFile:
			source := f.path + ": " + one.Name
			var texts []string
			if texts, err = textsOf(node, one.list); err != nil {
				return cli.Usage(fmt.Errorf("%s: %w", source, err))
			}
			if one.Name == "store" && hasSecret(texts[0]) {
				f.warnOfReaders(f.path, "it holds the password of the store")
			}
			err = one.take(source, texts)
		}
		if err != nil {
			return err
		}
	}
	for name := range values {
		return cli.Usage(fmt.Errorf("%s: unknown setting %q: 'tickflake serve --print-config' shows all", f.path, name))
	}
	return nil
}

// strays returns a warning for each variable that looks like one of a setting, and is none. A
// server with a wrong name for TICKFLAKE_STORE would take a store of its own, and issue the
// IDs of another server. Kubernetes sets variables for a Service of the name tickflake.
func (s *settings) strays(environment []string) (warnings []string) {
	for _, one := range environment {
		name, text, _ := strings.Cut(one, "=")
		known := name == variable("config") || name == variable("require-servers") // the latter is of the tests
		for _, setting := range s.all {
			known = known || name == variable(setting.Name)
		}
		kubernetes := strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
		if strings.HasPrefix(name, variable("")) && text != "" && !known && !kubernetes {
			warnings = append(warnings, "$"+name+" is no variable of a setting: it has no effect")
		}
	}
	return warnings
}

// take sets the texts, which came from the source.
func (s *setting) take(source string, texts []string) error {
	for _, text := range texts {
		if err := s.Value.Set(text); err != nil {
			return cli.Usage(fmt.Errorf("%s: %w", source, err))
		}
	}
	s.source = source
	return nil
}

// printConfig writes all settings as a file. Those without a value are comments.
func (s *serving) printConfig() error {
	for _, one := range s.all {
		texts := one.text()
		_, usage := pflag.UnquoteUsage(one.Flag)
		if one.Name == "store" && len(texts) == 1 && hasSecret(texts[0]) {
			texts, usage = nil, usage+": "+s.place.name()+", with a password that is not shown"
		}
		fmt.Fprintf(s.Out, "# %s\n", usage)
		if err := s.printSetting(one.Name, one.list, texts); err != nil {
			return err
		}
	}
	if len(s.file.Clients)+len(s.file.Create) == 0 {
		return nil
	}
	text, err := yaml.Marshal(file{Clients: s.file.Clients, Create: s.file.Create})
	if err == nil {
		_, err = s.Out.Write(text)
	}
	return err
}

func (s *serving) printSetting(name string, list bool, texts []string) error {
	if len(texts) == 0 {
		_, err := fmt.Fprintf(s.Out, "# %s:\n", name)
		return err
	}
	var nodes []*yaml.Node
	for _, text := range texts {
		nodes = append(nodes, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
	}
	value := nodes[0]
	if list {
		value = &yaml.Node{Kind: yaml.SequenceNode, Content: nodes}
	}
	text, err := yaml.Marshal(map[string]*yaml.Node{name: value})
	if err == nil {
		_, err = s.Out.Write(text)
	}
	return err
}
