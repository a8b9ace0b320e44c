//go:build example

package custom

func init() { Add(Mine()) }
