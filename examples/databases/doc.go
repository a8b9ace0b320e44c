// Package databases shows how to store the IDs of tickflake: each package below it is a
// few functions to copy, with a test that runs them on the real server. README.md goes
// through them.
package databases
