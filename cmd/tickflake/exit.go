package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/stores"
)

// configError turns an error of [generator.New] or [lease.Claim] into one that names the
// flag instead of the option. An error of a layout that was parsed is no usage error: the
// clock decides whether its time is over.
func configError(err error) error {
	refused, ok := errors.AsType[*stores.OptionError](err)
	if !ok {
		return err
	}
	flag := strings.ToLower(strings.TrimPrefix(refused.Option, "With"))
	err = fmt.Errorf("--%s: %w", flag, refused.Err)
	if flag == "layout" {
		return err
	}
	return cli.Usage(err)
}
