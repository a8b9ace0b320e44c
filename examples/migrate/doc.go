// Package migrate is the code of the guides in docs/migrate. Its tests run it against the
// generators and databases that the guides start from.
package migrate
