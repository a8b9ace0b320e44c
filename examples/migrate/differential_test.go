package migrate_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	flake "github.com/tickflake/tickflake/snowflake"
)

// Any number is written in the same way by both packages, and read back.
func TestFormsAreTheOriginals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		theirs, ours := bwmarrin.ID(n), snowflake.ID(n)
		assert.Equal(t, theirs.Int64(), ours.Int64())
		assert.Equal(t, theirs.String(), ours.String())
		assert.Equal(t, theirs.Base2(), ours.Base2())
		assert.Equal(t, theirs.Base36(), ours.Base36())
		assert.Equal(t, theirs.Base64(), ours.Base64())
		assert.Equal(t, theirs.Bytes(), ours.Bytes())
		assert.Equal(t, theirs.IntBytes(), ours.IntBytes())
		assert.EqualValues(t, bwmarrin.ParseIntBytes(theirs.IntBytes()), snowflake.ParseIntBytes(theirs.IntBytes()))
		if n >= 0 { // the original panics
			assert.Equal(t, theirs.Base32(), ours.Base32())
			assert.Equal(t, theirs.Base58(), ours.Base58())
		}
		theirJSON, err := json.Marshal(theirs)
		require.NoError(t, err)
		ourJSON, err := json.Marshal(ours)
		require.NoError(t, err)
		assert.Equal(t, theirJSON, ourJSON)
		assert.Equal(t, []int64{theirs.Time(), theirs.Node(), theirs.Step()}, []int64{ours.Time(), ours.Node(), ours.Step()})

		for _, text := range []string{ours.String(), ours.Base2(), ours.Base32(), ours.Base36(), ours.Base58(), ours.Base64(), string(ourJSON)} {
			sameReading(t, text)
		}
		back32, err := snowflake.ParseBase32([]byte(ours.Base32()))
		require.NoError(t, err)
		back58, err := snowflake.ParseBase58([]byte(ours.Base58()))
		require.NoError(t, err)
		assert.Equal(t, []snowflake.ID{ours, ours}, []snowflake.ID{back32, back58})
	})
}

// Any text is read, or refused, in the same way by both packages, except for what the
// adapter's package doc says.
func TestTextsAreReadAsTheOriginalDoes(t *testing.T) {
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`"?[+-]?[0-9]{0,21}"?`),
		rapid.StringMatching(`[01]{1,66}`),
		rapid.StringMatching(`[0-9a-zA-Z]{1,16}`),
		rapid.StringMatching(`[ybndrfg8ejkmcpqxot1uwisza345h769]{1,14}`),
		rapid.StringMatching(`[0-9A-Za-z+/]{1,28}={0,2}`),
	)
	rapid.Check(t, func(t *rapid.T) { sameReading(t, texts.Draw(t, "text")) })
}

func sameReading(t *rapid.T, text string) {
	t.Helper()
	b := []byte(text)
	same := func(form string, theirs bwmarrin.ID, theirErr error, ours snowflake.ID, ourErr error) {
		t.Helper()
		assert.EqualValues(t, theirs, ours, "%s %q", form, text)
		if theirErr != nil {
			assert.Error(t, ourErr, "%s %q", form, text)
		} else {
			assert.NoError(t, ourErr, "%s %q", form, text)
		}
	}
	theirs, theirErr := bwmarrin.ParseString(text)
	ours, ourErr := snowflake.ParseString(text)
	same("decimal", theirs, theirErr, ours, ourErr)
	theirs, theirErr = bwmarrin.ParseBytes(b)
	ours, ourErr = snowflake.ParseBytes(b)
	same("bytes", theirs, theirErr, ours, ourErr)
	theirs, theirErr = bwmarrin.ParseBase2(text)
	ours, ourErr = snowflake.ParseBase2(text)
	same("base 2", theirs, theirErr, ours, ourErr)
	theirs, theirErr = bwmarrin.ParseBase36(text)
	ours, ourErr = snowflake.ParseBase36(text)
	same("base 36", theirs, theirErr, ours, ourErr)
	theirs, theirErr = bwmarrin.ParseBase64(text)
	ours, ourErr = snowflake.ParseBase64(text)
	same("base 64", theirs, theirErr, ours, ourErr)
	theirs, ours = 7, 7
	theirErr, ourErr = theirs.UnmarshalJSON(b), ours.UnmarshalJSON(b)
	same("JSON", theirs, theirErr, ours, ourErr)

	if ours, ourErr = snowflake.ParseBase32(b); isNumber(text, "ybndrfg8ejkmcpqxot1uwisza345h769") {
		theirs, theirErr = bwmarrin.ParseBase32(b)
		same("base 32", theirs, theirErr, ours, ourErr)
	} else {
		assert.ErrorIs(t, ourErr, snowflake.ErrInvalidBase32, "%q", text)
	}
	if ours, ourErr = snowflake.ParseBase58(b); isNumber(text, "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ") {
		theirs, theirErr = bwmarrin.ParseBase58(b)
		same("base 58", theirs, theirErr, ours, ourErr)
	} else {
		assert.ErrorIs(t, ourErr, snowflake.ErrInvalidBase58, "%q", text)
	}
}

// isNumber reports whether text is a number of at most 64 bits with these digits.
func isNumber(text, digits string) bool {
	n, base := new(big.Int), big.NewInt(int64(len(digits)))
	for _, c := range []byte(text) {
		digit := strings.IndexByte(digits, c)
		if digit < 0 {
			return false
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(digit)))
	}
	return text != "" && n.BitLen() <= 64
}

// Both packages take each other's IDs apart in the same way, and the layout does so too.
func TestIDsMeanTheSame(t *testing.T) {
	defer setLayouts(bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits)
	rapid.Check(t, func(t *rapid.T) {
		nodeBits := rapid.Uint8Range(0, 22).Draw(t, "node bits")
		setLayouts(rapid.Int64Range(0, time.Now().Add(-time.Hour).UnixMilli()).Draw(t, "epoch"),
			nodeBits, rapid.Uint8Range(0, 22-nodeBits).Draw(t, "step bits"))
		number := rapid.Int64Range(0, 1<<nodeBits-1).Draw(t, "node")

		before := time.Now().UnixMilli()
		old, err := bwmarrin.NewNode(number)
		require.NoError(t, err)
		oldID := old.Generate()
		check(t, oldID, number, before)

		node, err := snowflake.NewNode(number)
		require.NoError(t, err)
		check(t, bwmarrin.ID(node.Generate()), number, before)
	})
}

func setLayouts(epoch int64, nodeBits, stepBits uint8) {
	bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits = epoch, nodeBits, stepBits
	snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = epoch, nodeBits, stepBits
}

func check(t require.TestingT, id bwmarrin.ID, node, before int64) {
	parts, err := snowflake.Layout().Decode(flake.ID(id))
	require.NoError(t, err)
	ours := snowflake.ID(id)
	assert.Equal(t, []int64{id.Time(), id.Node(), id.Step()}, []int64{ours.Time(), ours.Node(), ours.Step()})
	assert.Equal(t, []int64{id.Time(), id.Node(), id.Step()}, []int64{parts.Time.UnixMilli(), parts.Node, parts.Sequence})
	assert.Equal(t, node, id.Node())
	assert.GreaterOrEqual(t, id.Time(), before-1)
	assert.LessOrEqual(t, id.Time(), time.Now().UnixMilli()+1)
}
