// Package disktest has file systems that hang on demand, for tests on Linux as root. Its own
// test makes every call of a directory while the disk hangs.
//
//	for _, kind := range disktest.Kinds {
//		disk := disktest.New(t, kind)
//		...          // use disk.Dir
//		disk.Hang()
//		...          // each call of the disk waits
//		disk.Back()
//	}
//
// Without the rights of root, loop devices or FUSE, the test is skipped, or fails with
// TICKFLAKE_REQUIRE_SERVERS=1.
package disktest
