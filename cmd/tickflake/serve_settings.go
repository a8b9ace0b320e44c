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

// keep makes a setting of a flag that was just added. text returns its value.
func (s *settings) keep(name string, text func() []string) *setting {
	one := &setting{Flag: s.cmd.Flags().Lookup(name), text: text, source: "--" + name}
	s.all = append(s.all, one)
	return one
}

// fields makes a setting of each field of a struct that has the tag "setting".
func (s *settings) fields(of any) {
	fields := reflect.ValueOf(of).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		name := field.Tag.Get("setting")
		if name == "" {
			continue
		}
		value := fieldValue{fields.Field(i), field.Tag}
		if text := field.Tag.Get("default"); text != "" {
			if err := value.Set(text); err != nil {
				panic(err) // a bug: the tags are constants
			}
		}
		flag := s.cmd.Flags().VarPF(value, name, "", field.Tag.Get("usage"))
		if value.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		if value.Type() == "ADDRESS" {
			command.CompleteFlag(s.cmd, name, off)
		} else if value.Type() != "FILE" {
			command.CompleteFlag(s.cmd, name)
		}
		s.keep(name, value.texts).list = value.Kind() == reflect.Slice
	}
}

// fieldValue is the value of a flag that sets a field of a struct.
type fieldValue struct {
	reflect.Value
	tag reflect.StructTag
}

// Type is the name of the value in the help.
func (f fieldValue) Type() string {
	switch f.Value.Interface().(type) {
	case bool:
		return "bool" // which the help does not name
	case time.Duration:
		return "DURATION"
	case int, int64:
		return "N"
	}
	return f.tag.Get("value")
}

// String is the default in the help.
func (f fieldValue) String() string { return strings.Join(f.texts(), " ") }

func (f fieldValue) texts() []string {
	switch v := f.Interface().(type) {
	case []string:
		return v
	case string:
		if v == "" {
			return nil
		}
	}
	return []string{fmt.Sprint(f.Interface())}
}

// Set reads a text. The range is that of the service, but for a least value above 0: a 0 would be the
// default there.
func (f fieldValue) Set(text string) error {
	switch v := f.Addr().Interface().(type) {
	case *bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("want true or false, got %q", text)
		}
		*v = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want a duration such as 500ms or 5s, got %q", text)
		}
		if least, err := time.ParseDuration(f.tag.Get("least")); err == nil && d < least {
			return fmt.Errorf("want at least %s, got %s", least, d)
		}
		*v = d
	case *int, *int64:
		n, err := wholeNumber(text)
		if err != nil {
			return err
		}
		if least, err := wholeNumber(f.tag.Get("least")); err == nil && n < least {
			return fmt.Errorf("want at least %d, got %d", least, n)
		}
		f.SetInt(n)
	case *string:
		if text == "" {
			return errors.New("want a text, got none")
		}
		if _, _, err := net.SplitHostPort(text); err != nil && text != off && f.Type() == "ADDRESS" {
			return fmt.Errorf("want HOST:PORT or off, got %q", text)
		}
		*v = text
	case *[]string:
		if text == "" {
			return errors.New("want a name, got none")
		}
		*v = append(*v, text)
	}
	return nil
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

// some returns a value as the text of a setting, or nothing if it is the zero value.
func some[T comparable](value *T) func() []string {
	return func() []string {
		if *value == *new(T) {
			return nil
		}
		return []string{fmt.Sprint(*value)}
	}
}

// always returns a value as the text of a setting.
func always[T any](value *T) func() []string {
	return func() []string { return []string{fmt.Sprint(*value)} }
}
