package main

import (
	"cmp"
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
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/stores"
)

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

// settings are the flags of serve. Each has a variable, which takes the same text.
type settings struct {
	cmd     *cobra.Command
	sources map[string]string // of those that came from a variable, for messages
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
			})
		}
	}
}

// field makes a setting of a field, whose value has a name in the help.
func field[T any](s *settings, tag reflect.StructTag, name string, value *T, parse func(string) (T, error)) *pflag.Flag {
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
	return command.Flag(s.cmd, flag, usage, value, parse)
}

// off is the address of a protocol that is not served.
const off = "off"

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

func yesOrNo(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("want true or false, got %q", text)
	}
	return text == "true", nil
}

// fill sets the settings that have no flag from their variables. A list is words there.
func (s *settings) fill() (err error) {
	s.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		source := "$" + variable(f.Name)
		text := os.Getenv(source[1:])
		if f.Changed || text == "" || !s.has(f.Name) {
			return
		}
		texts := []string{text}
		if f.Value.Type() == "[]string" {
			texts = strings.Fields(text)
		}
		s.sources[f.Name] = source
		for _, text := range texts {
			if bad := f.Value.Set(text); bad != nil {
				err = cmp.Or(err, cli.Usage(fmt.Errorf("%s: %w", source, bad)))
			}
		}
	})
	return err
}

// variable returns the name of the environment variable of a flag.
func variable(flag string) string {
	return "TICKFLAKE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// has reports whether there is a setting of the name. Some flags are none.
func (s *settings) has(name string) bool {
	return name != "config" && name != "check" && name != "help" && s.cmd.Flags().Lookup(name) != nil
}

// source returns where the value of a setting came from, for messages.
func (s *settings) source(name string) string {
	if !s.has(name) {
		return name
	}
	return cmp.Or(s.sources[name], "--"+name)
}

// strays returns a warning for each variable that looks like one of a setting, and is none. A
// server with a wrong name for TICKFLAKE_STORE would take a store of its own, and issue the
// IDs of another server. Kubernetes sets variables for a Service of the name tickflake.
func (s *settings) strays(environment []string) (warnings []string) {
	for _, one := range environment {
		name, text, _ := strings.Cut(one, "=")
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, variable("")), "_", "-"))
		known := name == variable(flag) && (s.has(flag) || flag == "config" || flag == "require-servers") // the latter is of the tests
		kubernetes := strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
		if strings.HasPrefix(name, variable("")) && text != "" && !known && !kubernetes {
			warnings = append(warnings, "$"+name+" is no variable of a setting: it has no effect")
		}
	}
	return warnings
}

// refused turns an error of service.New into one that names the setting.
func (s *serving) refused(err error) error {
	wrong, ok := errors.AsType[*stores.OptionError](err)
	if !ok {
		return cli.Usage(err)
	}
	field := strings.TrimPrefix(wrong.Option, "Config.")
	known, _ := reflect.TypeFor[seam.Serve]().FieldByName(field)
	source := s.source(cmp.Or(known.Tag.Get("setting"), strings.ToLower(field)))
	if strings.HasPrefix(field, "Clients[") {
		source = s.file.path
	} else if field == "Create" {
		source = s.file.path + ": create"
	}
	problem := strings.NewReplacer("set AllowOpen", "set --open", "set AllowPlaintext", "set --plaintext").Replace(wrong.Err.Error())
	return cli.Usage(fmt.Errorf("%s: %s", source, problem))
}
