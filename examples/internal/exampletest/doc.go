// Package exampletest has the databases, generators and IDs that the tests of examples/databases,
// migrate and sequences share.
package exampletest
