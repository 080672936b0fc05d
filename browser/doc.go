// Package browser looks at the pages that vaultd serves in a real Chromium: whether axe-core finds a barrier, whether a page asks
// another machine for something, whether it can be used with the keyboard alone, without JavaScript and on a phone, and what
// it says while the daemon dies. It runs the real program against the stand-in of the service, on loopback.
//
// It is a module of its own, and holds nothing but tests: neither the driver of the browser nor axe-core is part of vaultd.
// One Chromium serves all tests, with a profile of its own in a temporary folder; it never reads or changes that of a person.
//
// A test ends every process that it started, also when it fails. If the test
// process is killed, the kernel ends Chromium and the daemons with it.
package browser
