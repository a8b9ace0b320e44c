// Package kubernetes checks the manifests beside it: that Kubernetes's own types take
// them, and that the HTTP service runs as they say.
package kubernetes
