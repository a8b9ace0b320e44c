package snowflake

import "errors"

// The causes of this package's errors, for [errors.Is]. The message adds the numbers: it
// says what was given, by how much it misses, and what to give instead. [Plan] alone
// returns a type, [*PlanError], because a caller can act on its fields.
var (
	// ErrSyntax: the text of an ID has a character that does not belong there, or
	// is not written in the one accepted way ("007").
	ErrSyntax = errors.New("malformed")

	// ErrLength: the text or the bytes of an ID are too short or too long for their
	// form.
	ErrLength = errors.New("wrong length")

	// ErrRange: a well-formed value lies outside its range. An ID lies outside 0 to
	// 9223372036854775807 or is not one of the layout's, a node or a sequence number
	// does not fit its field, or an instant lies outside the layout's lifetime.
	ErrRange = errors.New("out of range")

	// ErrType: a JSON, SQL, BSON or MessagePack value of a kind that holds no ID, such as a JSON
	// object or an SQL NULL.
	ErrType = errors.New("wrong type")

	// ErrLayout: a [Layout], or the text of one, that cannot work, or cannot work
	// at the given instant. It is a mistake in the configuration.
	ErrLayout = errors.New("unusable layout")

	// ErrEarly: the clock reads an instant before the layout's epoch, although the epoch is older than this
	// release: the clock was not set yet, as on a machine without a battery.
	ErrEarly = errors.New("the clock is not set yet")

	// ErrDemand: a [Demand] with a value that [Plan] cannot take, such as 0 nodes. A
	// demand that is clear but too large is a [*PlanError] instead.
	ErrDemand = errors.New("unusable demand")
)
