package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
)

// off is the address of a protocol that is not served.
const off = "off"

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

func (s *settings) find(name string) *setting {
	for _, one := range s.all {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// source returns where the value of a setting came from, for messages.
func (s *settings) source(name string) string { return s.find(name).source }

// fill sets the settings that have no flag from their variables, and the rest from the file,
// if there is one.
func (s *settings) fill(f *file) error {
	taken := make(map[string]bool)
	for _, one := range s.all {
		text := os.Getenv(variable(one.Name))
		taken[one.Name] = one.Changed || text != ""
		if one.Changed || text == "" {
			continue
		}
		texts := []string{text}
		if one.list {
			texts = strings.Fields(text)
		}
		if err := one.take("$"+variable(one.Name), texts); err != nil {
			return err
		}
	}
	if f.path == "" {
		return nil
	}
	return f.read(func(name string) (*setting, bool) { return s.find(name), taken[name] })
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

// address adds the flag of a protocol's address.
func (s *settings) address(name, protocol string, value *string) {
	usage := fmt.Sprintf("`ADDRESS` at which to serve %s, as HOST:PORT, or off; port 0 is any that is free (default %s)", protocol, *value)
	s.cmd.Flags().Func(name, usage, func(text string) error {
		if text != off {
			if _, _, err := net.SplitHostPort(text); err != nil {
				return fmt.Errorf("want HOST:PORT or off, got %q", text)
			}
		}
		*value = text
		return nil
	})
	command.CompleteFlag(s.cmd, name, off)
	s.keep(name, always(value))
}

// number adds a flag that takes a whole number from least on.
func (s *settings) number(name, usage string, least int64, value *int64) {
	numberFlag(s.cmd, name, usage, least, value)
	s.keep(name, always(value))
}

// duration adds a flag that takes a time from least on. Its value is the default.
func (s *settings) duration(name, usage string, least time.Duration, value *time.Duration) {
	if *value > 0 {
		usage += fmt.Sprintf(" (default %s)", *value)
	}
	s.cmd.Flags().Func(name, usage, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want a duration such as 500ms or 5s, got %q", text)
		}
		if d < least {
			return fmt.Errorf("want at least %s, got %s", least, d)
		}
		*value = d
		return nil
	})
	command.CompleteFlag(s.cmd, name)
	s.keep(name, always(value))
}

// word adds a flag that takes any text but an empty one.
func (s *settings) word(name, usage string, value *string) {
	s.cmd.Flags().Func(name, usage, func(text string) error {
		if text == "" {
			return errors.New("want a text, got none")
		}
		*value = text
		return nil
	})
	s.keep(name, some(value))
}

// list adds a flag that can be given several times. check returns why a text is refused.
func (s *settings) list(name, usage string, values *[]string, check func(string) error) {
	s.cmd.Flags().Func(name, usage, func(text string) error {
		if err := check(text); err != nil {
			return err
		}
		*values = append(*values, text)
		return nil
	})
	command.CompleteFlag(s.cmd, name)
	s.keep(name, func() []string { return *values }).list = true
}

// yes adds a flag that takes true or false.
func (s *settings) yes(name, usage string, value *bool) {
	s.cmd.Flags().BoolFunc(name, usage, func(text string) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("want true or false, got %q", text)
		}
		*value = text == "true"
		return nil
	})
	s.keep(name, always(value))
}
