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
	op    string
	done  []string
}

var errFull, errClosed, errBusy, errEnd = errors.New("full"), errors.New("closed"), errors.New("busy"), errors.New("end")

func (s *script) Next() (drive.Kind, error) {
	switch s.op = s.words[0]; strings.TrimRight(s.op, "?!+^") {
	case "ask":
		return drive.Ask, nil
	case "write":
		return drive.Write, nil
	case "prepare":
		return drive.Prepare, nil
	case "full":
		return drive.None, errFull
	case "closed":
		return drive.None, errClosed
	}
	return drive.None, nil
}

func (s *script) Do(context.Context) error {
	s.Lock() // Run does not hold it
	defer s.Unlock()
	s.done = append(s.done, s.op)
	s.words = s.words[1:]
	if strings.HasSuffix(s.op, "?") {
		return errors.New(s.op + " of " + s.done[0])
	}
	return nil
}

func (s *script) Done() (settled bool, err error) {
	events := map[string]string{"write": ". settled", "ask+": "settled .", "ask^": "end . full"}[s.op]
	return drive.Act(strings.Fields(events), func(event string) (bool, error) {
		return event == "settled", map[string]error{"end": errEnd, "full": errFull}[event] // the first error counts
	})
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
		err := drive.Run(t.Context(), s)
		assert.Len(t, s.done, want.done, words)
		assert.Len(t, s.words, all-want.done, words)
		if want.err == "" {
			assert.NoError(t, err, words)
		} else {
			assert.EqualError(t, err, want.err, words)
		}
	}
}
