// Package snowflake holds the values: 64-bit IDs, and the layouts that say how their
// bits divide into time, node and sequence. It keeps no state, reads no clock and
// issues nothing; package generator does that.
//
// You need these names:
//
//   - [ID]: an int64 with text, JSON, SQL, BSON and binary forms.
//   - [Parse]: reads an ID from decimal text.
//   - [Default]: the layout that tickflake uses unless told otherwise.
//   - [Layout.Decode]: takes an ID apart.
//   - [Layout.Between]: turns a range of time into a range of IDs, for a query.
//
// [Twitter], [Discord], [Sonyflake] and others are the layouts of known generators.
// [ParseLayout] reads a layout from text, and [Plan] finds one for a given number of
// nodes, rate and lifetime.
package snowflake
