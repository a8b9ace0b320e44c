//go:build !linux

package vmclock

import "errors"

func mapPage(string) ([]byte, error) { return nil, errors.ErrUnsupported }
