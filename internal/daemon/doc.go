// Package daemon is the wiring: it takes the lock, opens the ledger, the drop folders and the spool, connects the packages
// that do not know each other, and starts their loops. The program and the simulation use the same wiring.
//
// It never decides what happens to a document. It never ends for a fault of the service or of one
// drop folder; it ends when its context does, or when the ledger cannot commit or a disk cannot be trusted.
//
// After a crash a start is the same as any other: lock, ledger, then claimed folders
// without an entry are adopted, and what is due goes on.
package daemon
