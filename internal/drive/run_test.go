package drive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/drive"
)

// script is a machine and its driver. Each word is an operation with what becomes of it:
//
//	ask, write, prepare   succeeds; a write is then settled
//	write?                has an unknown outcome
//	write!                conflicts
//	ask?                  fails
//	ask+                  tells that the write of unknown outcome is settled
//	ask^                  shows what ends the run
//	idle, full, closed    there is nothing to do; so, with an error; the package is closed
type script struct {
	sync.Mutex
	words []string
	done  []string
}

var errFull, errClosed, errBusy, errEnd = errors.New("full"), errors.New("closed"), errors.New("busy"), errors.New("end")

func (s *script) Input() (int, error) {
	if s.words[0] == "closed" {
		return 0, errClosed
	}
	return len(s.done), nil
}

func (s *script) After(in *int) { *in = -*in }

func (s *script) Next(int) string { return s.words[0] }

func (s *script) Kind(op string) (drive.Kind, error) {
	switch strings.TrimRight(op, "?!+^") {
	case "ask":
		return drive.Ask, nil
	case "write":
		return drive.Write, nil
	case "prepare":
		return drive.Prepare, nil
	case "full":
		return drive.None, errFull
	}
	return drive.None, nil
}

func (s *script) Do(_ context.Context, op string) (string, error) {
	s.Lock() // Run does not hold it
	defer s.Unlock()
	s.done = append(s.done, op)
	s.words = s.words[1:]
	if strings.HasSuffix(op, "?") {
		return op, errors.New(op + " of " + s.done[0])
	}
	return op, nil
}

func (s *script) Done(in int, op, result string) []string {
	if in != 1-len(s.done) || op != result {
		panic("the input of another operation, or another result")
	}
	switch {
	case op == "write":
		return []string{"", "settled"}
	case op == "ask+":
		return []string{"settled", ""}
	case op == "ask^":
		return []string{"end", "", "full"}
	}
	return []string{""}
}

func (s *script) Apply(event string) (settled bool, err error) {
	switch event {
	case "end":
		err = errEnd
	case "full":
		err = errFull // the first error counts
	}
	return event == "settled", err
}

func (s *script) Busy() error { return errBusy }

func TestRun(t *testing.T) {
	for words, want := range map[string]struct {
		done int
		err  string
	}{
		"idle":                                  {0, ""},
		"full":                                  {0, "full"},
		"closed":                                {0, "closed"},
		"write write":                           {1, ""},
		"ask? write":                            {1, "ask? of ask?"},
		"ask^ write":                            {1, "end"},
		"write? ask write":                      {2, "write? of write?"},
		"write? ask? write":                     {2, "write? of write?"},
		"write? ask prepare ask ask+ write":     {6, ""},
		"write? ask prepare? ask prepare":       {4, "prepare? of write?"},
		"prepare? prepare":                      {1, "prepare? of prepare?"},
		"write? ask full":                       {2, "full"},
		strings.Repeat("write! ask ", 9):        {15, "busy"},
		strings.Repeat("prepare ask ", 9):       {15, "busy"},
		strings.Repeat("ask ", 99) + "write a":  {100, ""},
		strings.Repeat("write! ", 7) + "write?": {8, "write? of write!"},
	} {
		s := &script{words: strings.Fields(words)}
		all := len(s.words)
		err := drive.Run(t.Context(), s, s)
		assert.Len(t, s.done, want.done, words)
		assert.Len(t, s.words, all-want.done, words)
		if want.err == "" {
			assert.NoError(t, err, words)
		} else {
			assert.EqualError(t, err, want.err, words)
		}
	}
}
