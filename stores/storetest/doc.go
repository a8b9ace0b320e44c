// Package storetest tests a [stores.Store], and has a store with faults for the tests of
// programs that use a store.
//
// You need these names:
//
//   - [TestStore]: checks the promises of every [stores.Store], without faults.
//   - [TestServer]: checks a Store while its server hangs, is killed, answers late, has damaged
//     cells, or loses a connection in the middle of a write.
//   - [Memory]: a Store in memory with faults on demand.
//   - [Proxy]: holds back, cuts, loses and refuses connections to a server of any kind; [Serve] is a server of a few lines.
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
