// Package devicetest tests device backends against the contract of device.Backend. The author of a
// backend runs it from an ordinary test:
//
//	func TestContract(t *testing.T) {
//		devicetest.Run(t, func(t *testing.T) device.Backend { return mychip.New() })
//	}
//
// # Concepts
//
// Each sub-test asks for a fresh backend and checks one promise of device.Backend, or of
// device.StreamQueue or device.Copier where the backend has that ability. The sub-tests are skipped
// with the reason when the backend is not usable on the machine. What memory holds is checked for
// devices of type CPU and for those that copy. A backend that has a method Close() error is closed
// at the end of each sub-test, with nothing left in it.
//
// # Concurrency
//
// The sub-tests run one after the other, because devices are shared. Some of them use the backend
// from several goroutines: run them with -race too.
package devicetest
