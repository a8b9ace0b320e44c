// Package custom has the generators that a reader adds to the report. They stand beside the
// other generators in each section that applies. Add a file like example.go; see what becomes of
// that one by
//
//	go run -tags example ./bench --quick
package custom
