// Package storetest tests a [stores.Store], and stands in for one in the tests of
// programs that use a store.
//
// You need these names:
//
//   - [TestStore]: checks what every [stores.Store] promises, with nothing going wrong.
//   - [TestServer]: checks what a Store makes of a server that is killed, answers late, or
//     loses a connection in the middle of a write.
//   - [Memory]: a Store in memory whose faults come when the test says so.
//   - [Proxy]: holds back, cuts and refuses connections to a server of any kind.
//
// A Store of your own needs both suites:
//
//	func TestConformance(t *testing.T) {
//		addr := startServer(t)
//		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
//			return openStore(t, addr, namespace)
//		})
//	}
//
// They cannot check that an acknowledged write survives a power cut, or the loss of one
// machine of several: that depends on how the server is set up.
package storetest
