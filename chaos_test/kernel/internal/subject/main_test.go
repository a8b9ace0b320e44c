package subject

import (
	"os"
	"testing"
)

// placesVariable has the places of the subjects that a process runs.
const placesVariable = "TICKFLAKE_SUBJECT_TEST"

// TestMain makes this program a subject, as kernel.Main does in the machine.
func TestMain(m *testing.M) {
	if places := os.Getenv(placesVariable); places != "" {
		os.Exit(Serve(places))
	}
	os.Exit(m.Run())
}
