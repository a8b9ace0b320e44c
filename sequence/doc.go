// Package sequence issues counted numbers.
package sequence
