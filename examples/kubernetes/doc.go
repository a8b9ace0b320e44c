// Package kubernetes tests the manifests in this directory: Kubernetes's own types accept
// them, and the HTTP service runs with them.
package kubernetes
