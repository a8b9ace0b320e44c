package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// printConfig writes all settings as a file. Those without a value are comments.
func (s *serving) printConfig() error {
	for _, one := range s.all {
		texts := one.text()
		name, usage := pflag.UnquoteUsage(one.Flag)
		if !strings.Contains(one.Usage, "`") && name != "" {
			usage = name + " " + usage
		}
		if one.Name == "store" && len(texts) == 1 && hasSecret(texts[0]) {
			texts, usage = nil, usage+": "+s.place.name()+", with a password that is not shown"
		}
		for _, line := range wrap(usage, 86) {
			fmt.Fprintf(s.Out, "# %s\n", line)
		}
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

var words = regexp.MustCompile(`\S+`)

// wrap breaks a text into lines of at most so many bytes, unless a word is longer.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range words.FindAllString(text, -1) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line += choose(line == "", "", " ") + word
	}
	return append(lines, line)
}
