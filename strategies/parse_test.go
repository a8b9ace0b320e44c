package strategies_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/strategies"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]strategies.Strategy{
		"reject":                  strategies.Reject(),
		"wait":                    strategies.Wait(),
		"wait:5ms":                strategies.WaitUpTo(5 * ms),
		"borrow:1m30s":            strategies.BorrowUpTo(90 * time.Second),
		"borrow:1s,wait:5s":       strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second)),
		"default":                 strategies.Default(),
		"twitter":                 strategies.LikeTwitter(),
		"leaf":                    strategies.LikeLeaf(),
		"last-timestamp-plus-one": strategies.LastTimestampPlusOne(),
		"exhausted=wait:1s/behind=borrow:1s,wait": strategies.PerCause(strategies.WaitUpTo(time.Second),
			strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.Wait())),
		"(twitter),(wait)": strategies.Chain(strategies.LikeTwitter(), strategies.Wait()),
		"exhausted=(exhausted=wait/behind=reject),reject/behind=leaf": strategies.PerCause(strategies.Chain(strategies.LikeTwitter(), strategies.Reject()), strategies.LikeLeaf()),
	} {
		got, err := strategies.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		again, err := strategies.Parse(fmt.Sprint(got))
		require.NoError(t, err, "as printed: %s", got)
		assert.Equal(t, want, again, "as printed: %s", got)
	}
	assert.Equal(t, "(exhausted=wait/behind=reject),strategies_test.waiter",
		fmt.Sprint(strategies.Chain(strategies.LikeTwitter(), waiter{})))
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                            "want reject",
		"Reject":                      "want reject",
		"wait:":                       "duration",
		"wait:5":                      "duration",
		"borrow":                      "want reject",
		"borrow:-1s":                  "negative",
		"sleep:5ms":                   "want reject",
		"wait:5ms,":                   "want reject",
		"wait, reject":                "want reject",
		"exhausted=wait":              "/behind=",
		"exhausted=/behind=wait":      "want reject",
		"exhausted=wait/behind=":      "want reject",
		"behind=wait/exhausted=wait":  "want reject",
		strings.Repeat("wait", 10):    `waitwait": not known`,
		"(wait":                       "want reject",
		"wait)":                       "want reject",
		"(wait)(wait)":                "want reject",
		"((exhausted=wait))":          "/behind=",
		strings.Repeat("wait", 1<<16): "want reject",
	} {
		_, err := strategies.Parse(text)
		require.ErrorIs(t, err, strategies.ErrInvalid, text)
		assert.ErrorContains(t, err, says, text)
		assert.Less(t, len(err.Error()), 300, "a long text is cut")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"reject", "borrow:1s,wait:5s", "exhausted=wait:1s/behind=reject", "wait:-1s", "leaf,,", "twitter,wait", "exhausted=leaf/behind=(leaf),wait"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := strategies.Parse(text)
		if err != nil {
			assert.ErrorIs(t, err, strategies.ErrInvalid)
			return
		}
		require.NoError(t, strategies.Validate(s))
		printed := fmt.Sprint(s)
		again, err := strategies.Parse(printed)
		require.NoError(t, err, printed)
		assert.Equal(t, printed, fmt.Sprint(again))
	})
}

func TestParseSequenceStart(t *testing.T) {
	for _, want := range []strategies.SequenceStart{strategies.StartZero(), strategies.StartRandom(1), strategies.StartRandom(4096)} {
		got, err := strategies.ParseSequenceStart(want.String())
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "random", "random:", "random:0", "random:-1", "random:+8", "random:08", "zero:8", strings.Repeat("9", 1000)} {
		_, err := strategies.ParseSequenceStart(text)
		require.ErrorIs(t, err, strategies.ErrInvalid, text)
		assert.Less(t, len(err.Error()), 200)
	}
}
