// Package databases shows how to store IDs of tickflake. Each package below it is a few
// functions to copy, tested here on the real server. README.md explains them.
package databases
