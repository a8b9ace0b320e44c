// Package kubernetes tests the manifests in this directory: Kubernetes's own types accept
// them, and the HTTP service and "tickflake serve" run with them.
package kubernetes
