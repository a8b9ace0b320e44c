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

// ownSettings are those that the command has beside those of [seam.Serve], with the same tags.
type ownSettings struct {
	RESP        string `setting:"resp" default:"127.0.0.1:6380" value:"ADDRESS" usage:"serve the Redis protocol at ADDRESS, as HOST:PORT, or off; port 0 is any that is free"`
	HTTP        string `setting:"http" default:"127.0.0.1:8380" value:"ADDRESS" usage:"serve HTTP at ADDRESS"`
	GRPC        string `setting:"grpc" default:"127.0.0.1:9380" value:"ADDRESS" usage:"serve gRPC at ADDRESS"`
	Probes      string `setting:"probes" default:"off" value:"ADDRESS" usage:"serve /livez and /readyz alone at ADDRESS, over HTTP without TLS"`
	TLSCert     string `setting:"tls-cert" value:"FILE" usage:"use TLS, with the certificate in FILE, as PEM; it is read again when it changes"`
	TLSKey      string `setting:"tls-key" value:"FILE" usage:"use the certificate's key in FILE, as PEM"`
	TLSClientCA string `setting:"tls-client-ca" value:"FILE" usage:"serve only clients with a certificate of an authority in FILE, as PEM"`
}

// setting is one value of the configuration of serve. Its flag and its variable take the same text.
type setting struct {
	*pflag.Flag
	list   bool
	source string // of the value, for messages
}

// variable returns the name of the environment variable of a flag.
func variable(flag string) string {
	return "TICKFLAKE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settings is the table of them, in the order of the help. It drives the flags and the variables.
type settings struct {
	cmd *cobra.Command
	all []*setting
}

// keep makes a setting of a flag that was just added.
func (s *settings) keep(name string) *setting {
	one := &setting{Flag: s.cmd.Flags().Lookup(name), source: "--" + name}
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

// fields makes a setting of each field that the type tags has, of the field of the struct of that name. The range is that of
// the service, but for a least value above 0: a 0 would be the default there.
func (s *settings) fields(of any, tags reflect.Type) {
	for known := range tags.Fields() {
		tag := known.Tag
		number := atLeast(tag.Get("least"), wholeNumber)
		switch value := reflect.ValueOf(of).Elem().FieldByName(known.Name).Addr().Interface().(type) {
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
			field(s, tag, tag.Get("value"), value, func(text string) ([]string, error) {
				_, err := someText(text)
				return append(*value, text), err
			}).list = true
		}
	}
}

// field makes a setting of a field, whose value has a name in the help.
func field[T any](s *settings, tag reflect.StructTag, name string, value *T, parse func(string) (T, error)) *setting {
	usage, flag := tag.Get("usage"), tag.Get("setting")
	if name != "" {
		usage = strings.Replace(usage, name, "`"+name+"`", 1)
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
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil && text != off {
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

// fill sets the settings that have no flag from their variables.
func (s *settings) fill() error {
	for _, one := range s.all {
		text := os.Getenv(variable(one.Name))
		if one.Changed || text == "" {
			continue
		}
		texts := []string{text}
		if one.list {
			texts = strings.Fields(text)
		}
		one.source = "$" + variable(one.Name)
		for _, text := range texts {
			if err := one.Value.Set(text); err != nil {
				return cli.Usage(fmt.Errorf("%s: %w", one.source, err))
			}
		}
	}
	return nil
}

// has reports whether there is a setting of the name.
func (s *settings) has(name string) bool { return s.find(name) != nil }

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
