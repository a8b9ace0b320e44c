// Package sequencetest tests counted sequences on a store. It is for the authors of a
// [stores.Store].
//
// You need these names:
//
//   - [TestSequences]: sequences on a real store, for the tests of an engine.
//
// The conformance suite of stores is in package
// [github.com/tickflake/tickflake/stores/storetest]. Run that one first: these tests take
// for granted that the store passes it.
package sequencetest
