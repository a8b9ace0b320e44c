// Package migrate is the code of the guides in docs/migrate, which show it as it stands
// here. Its tests run it against the generators and databases that the guides start from,
// and hold every statement of the guides to what these really do.
package migrate
