package stores

// URLError reports a URL that names no store. By the type, a command sees that an
// argument is wrong, and not a server.
//
// Its text and its causes show no part of the URL that can be a password: only the
// scheme, the names of options that the engine or its driver knows, and, if they are
// wrong, the values of the options namespace and table, and the names of files.
type URLError struct {
	Scheme  string // such as "postgres"; empty if it is unknown
	Problem string // the mistake, and what to write instead
	Err     error  // the cause, such as that of a file of certificates; or nil
}

func (e *URLError) Error() string {
	text := "store URL: " + e.Problem
	if e.Scheme != "" {
		text = e.Scheme + " " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *URLError) Unwrap() error { return e.Err }

// Is reports whether target is [Refused].
func (e *URLError) Is(target error) bool { return target == Refused }
