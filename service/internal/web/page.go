package web

import (
	"embed"
	"net/http"
	"strconv"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

//go:embed static
var static embed.FS

// file returns a handler that answers with an embedded file.
func file(name, kind string) handler {
	content, err := static.ReadFile("static/" + name)
	if err != nil {
		panic(err) // the name is not one of the embedded files
	}
	return func(w http.ResponseWriter, _ *http.Request, _ *issuer.Client) (int64, error) {
		w.Header()["Content-Security-Policy"] = pagePolicy
		return write(w, kind, content)
	}
}

func writeText(w http.ResponseWriter, text string) (int64, error) {
	return write(w, "text/plain; charset=utf-8", []byte(text))
}

// write writes a whole answer. It has the results of a handler.
func write(w http.ResponseWriter, kind string, content []byte) (int64, error) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.Write(content) // an error: the client has gone away
	return 0, nil
}
