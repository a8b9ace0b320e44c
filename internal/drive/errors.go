package drive

import (
	"errors"
	"reflect"
	"strings"
	"unicode"

	"github.com/tickflake/tickflake/stores"
)

// Wrap returns an error that has this text, and wraps all errs: the text need not have theirs.
func Wrap(text string, errs ...error) error { return &wrapped{text, errs} }

type wrapped struct {
	text string
	errs []error
}

func (e *wrapped) Error() string   { return e.text }
func (e *wrapped) Unwrap() []error { return e.errs }

// Printable is a text that another process wrote, for an error or a list: one line of printable
// characters. Each other character is shown as "?".
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// Busy returns the error of [InARow] writes that all met those of other processes. The text says so,
// and what to do.
func Busy(text string) error { return Wrap(text, ErrStore, stores.ErrConflict) }

// ErrNil is why an option or an argument is refused.
var ErrNil = errors.New("is nil")

// IsNil reports whether x is nil, or a nil pointer in an interface.
func IsNil(x any) bool {
	if x == nil {
		return true
	}
	v := reflect.ValueOf(x)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// DamagedCells returns the errors of the cells that a store could not list, out of that of the list.
func DamagedCells(err error) (all []*stores.DamagedError) {
	switch e := err.(type) {
	case *stores.DamagedError:
		return append(all, e)
	case interface{ Unwrap() error }:
		return DamagedCells(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, DamagedCells(err)...)
		}
	}
	return all
}
