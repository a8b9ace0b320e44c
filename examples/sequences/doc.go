// Package sequences is the code of docs/sequences.md. Its tests run it.
//
// The folder sql shows how a database gives out numbers without any gap: a row has the last
// number, and a transaction that needs the next one updates that row. The row stays locked until
// the transaction ends, so a number is given out only if its transaction is committed.
package sequences
