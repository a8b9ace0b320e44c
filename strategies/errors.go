package strategies

import "errors"

// ErrInvalid is the cause of every error of this package, for [errors.Is]: a strategy, a
// sequence start, or the text of one, that cannot work. It is a mistake in the
// configuration. The message says what is wrong and what to give.
var ErrInvalid = errors.New("invalid")
