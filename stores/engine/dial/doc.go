// Package dial connects the driver of an engine to its server. It is apart from package engine so that a program
// with no store but a directory links neither TLS nor HTTP.
package dial
