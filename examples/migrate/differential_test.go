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

// parsers are those of both packages by form. Base 32 and 58 refuse foreign digits, which the
// original does not.
var parsers = []struct {
	form   string
	digits string // if foreign ones are refused
	theirs func(string) (bwmarrin.ID, error)
	ours   func(string) (snowflake.ID, error)
}{
	{"decimal", "", bwmarrin.ParseString, snowflake.ParseString},
	{"bytes", "", ofBytes(bwmarrin.ParseBytes), ofBytes(snowflake.ParseBytes)},
	{"base 2", "", bwmarrin.ParseBase2, snowflake.ParseBase2},
	{"base 36", "", bwmarrin.ParseBase36, snowflake.ParseBase36},
	{"base 64", "", bwmarrin.ParseBase64, snowflake.ParseBase64},
	{"JSON", "",
		func(text string) (id bwmarrin.ID, err error) { id = 7; err = id.UnmarshalJSON([]byte(text)); return },
		func(text string) (id snowflake.ID, err error) { id = 7; err = id.UnmarshalJSON([]byte(text)); return }},
	{"base 32", "ybndrfg8ejkmcpqxot1uwisza345h769", ofBytes(bwmarrin.ParseBase32), ofBytes(snowflake.ParseBase32)},
	{"base 58", "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", ofBytes(bwmarrin.ParseBase58), ofBytes(snowflake.ParseBase58)},
}

func ofBytes[ID any](parse func([]byte) (ID, error)) func(string) (ID, error) {
	return func(text string) (ID, error) { return parse([]byte(text)) }
}

func sameReading(t *rapid.T, text string) {
	t.Helper()
	for _, p := range parsers {
		ours, ourErr := p.ours(text)
		if p.digits != "" && !isNumber(text, p.digits) {
			assert.Error(t, ourErr, "%s %q", p.form, text)
			continue
		}
		theirs, theirErr := p.theirs(text)
		assert.EqualValues(t, theirs, ours, "%s %q", p.form, text)
		assert.Equal(t, theirErr == nil, ourErr == nil, "%s %q: %v, %v", p.form, text, theirErr, ourErr)
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

		old, err := bwmarrin.NewNode(number)
		require.NoError(t, err)
		node, err := snowflake.NewNode(number)
		require.NoError(t, err)
		for _, id := range []bwmarrin.ID{old.Generate(), bwmarrin.ID(node.Generate())} {
			parts, err := snowflake.Layout().Decode(flake.ID(id))
			require.NoError(t, err)
			ours, theirs := snowflake.ID(id), []int64{id.Time(), id.Node(), id.Step()}
			assert.Equal(t, number, id.Node())
			assert.InDelta(t, time.Now().UnixMilli(), id.Time(), 60_000)
			assert.Equal(t, theirs, []int64{ours.Time(), ours.Node(), ours.Step()})
			assert.Equal(t, theirs, []int64{parts.Time.UnixMilli(), parts.Node, parts.Sequence})
		}
	})
}

func setLayouts(epoch int64, nodeBits, stepBits uint8) {
	bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits = epoch, nodeBits, stepBits
	snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = epoch, nodeBits, stepBits
}
