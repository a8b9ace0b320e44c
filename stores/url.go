package stores

// URLError reports a URL that names no store. A command tells by the type that an
// argument is wrong, and not a server.
//
// Its text and its causes show nothing of the URL that can be a password: only the
// scheme, the names of options that the engine or its driver knows, and, if that is what
// is wrong, the values of the options namespace and table, and the names of files.
type URLError struct {
	Scheme  string // such as "postgres"; empty if no engine has it
	Problem string // what is wrong, and what to write instead
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
