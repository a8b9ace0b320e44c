package stores

import (
	"slices"
	"strings"
)

// engines are the engines of this project: the package, and its schemes. A new engine is one line here.
var engines = []struct{ name, schemes string }{
	{"directory", "file"},
	{"etcd", "etcd etcds"},
	{"zookeeper", "zk zks"},
	{"postgres", "postgres postgresql"},
	{"mysql", "mysql"},
	{"redis", "redis rediss"},
	{"nats", "nats tls"},
	{"s3", "s3"},
	{"kubernetes", "k8s"},
}

// schemes returns the schemes of the URLs of this project's engines, whether or not the program imports
// them. The first is file.
func schemes() (all []string) {
	for _, e := range engines {
		all = append(all, strings.Fields(e.schemes)...)
	}
	return all
}

// engineOf returns the name of the engine for a scheme, or "" if there is none. An empty scheme is that of
// bare paths.
func engineOf(scheme string) string {
	for _, e := range engines {
		if slices.Contains(strings.Fields(e.schemes), scheme) || scheme == "" {
			return e.name
		}
	}
	return ""
}
