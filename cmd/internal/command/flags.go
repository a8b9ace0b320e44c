package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// short are the flags that have a letter, too, the one that other programs give them.
var short = map[string]string{"format": "o", "count": "n"}

// Flag adds a flag, whose text parse turns into *value. The usage has the default, if the help is to
// show it, and in backquotes the name of the value.
func Flag[T any](cmd *cobra.Command, name, usage string, value *T, parse func(string) (T, error)) *pflag.Flag {
	flag := cmd.Flags().VarPF(&parsed[T]{value: value, parse: parse}, name, short[name], usage)
	flag.DefValue = "" // so that the help does not add it
	return flag
}

// parsed is the value of a flag of [Flag].
type parsed[T any] struct {
	value *T
	parse func(string) (T, error)
	text  string // that was parsed
}

func (p *parsed[T]) Set(text string) error {
	value, err := p.parse(text)
	if err == nil {
		*p.value, p.text = value, text
	}
	return err
}

func (p *parsed[T]) String() string { return cmp.Or(p.text, fmt.Sprint(*p.value)) }

func (p *parsed[T]) Type() string { return fmt.Sprintf("%T", *p.value) }

// ChoiceFlag adds a flag that takes one of some words, which the shell completes. The first is the default.
func ChoiceFlag(cmd *cobra.Command, name, usage string, choices ...string) *string {
	value := choices[0]
	list := strings.Join(choices[:len(choices)-1], ", ") + " or " + choices[len(choices)-1]
	Flag(cmd, name, fmt.Sprintf("%s: %s (default %q)", usage, list, value), &value, func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("want %s, got %q", list, s)
		}
		return s, nil
	})
	// It fails for a flag that does not exist, and for one completed twice.
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	return &value
}
