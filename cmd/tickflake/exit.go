package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
)

// configError turns an error of [generator.New] or [lease.Claim] into one that names the
// flag instead of the option. An error of a layout that was parsed is no usage error: the
// clock decides whether its time is over.
func configError(err error) error {
	var config *generator.ConfigError
	var claim *lease.OptionError
	option := ""
	switch {
	case errors.As(err, &config):
		option, err = config.Option, config.Err
	case errors.As(err, &claim):
		option, err = claim.Option, claim.Err
	default:
		return err
	}
	flag := strings.ToLower(strings.TrimPrefix(option, "With"))
	err = fmt.Errorf("--%s: %w", flag, err)
	if flag == "layout" {
		return err
	}
	return cli.Usage(err)
}
