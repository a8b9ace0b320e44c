//go:build example

package yours

func init() { Add(Mine()) }
