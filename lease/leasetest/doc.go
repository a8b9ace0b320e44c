// Package leasetest tests a [lease.Store], and stands in for one in the tests of
// programs that hold a lease.
//
// # To try out a Store
//
// [TestStore] checks what every [lease.Store] promises, with nothing going wrong.
// [TestServer] checks what is left of it when the server behind the Store is
// killed, answers late, or loses the connection in the middle of a write. A Store
// of your own needs both:
//
//	func TestConformance(t *testing.T) {
//		addr := startServer(t)
//		leasetest.TestStore(t, func(t testing.TB, namespace string) lease.Store {
//			return openStore(t, addr, namespace)
//		})
//	}
//
// What they cannot check is that an acknowledged write survives a power cut, or
// the loss of one machine of several: that is a matter of how the server is set up.
//
// # To test what uses a Store
//
// [Memory] is a Store in memory whose faults come when they are told to.
package leasetest
