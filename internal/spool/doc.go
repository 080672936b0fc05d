// Package spool keeps the sealed packages that wait for their upload, bounds
// how much space they take, and keeps space free on the disk of the state
// directory for the ledger.
//
// It never decides what happens to a document. It removes only files that bear
// a name of vaultd's own: packages, half-made packages, and downloads. Any
// other file there is logged once in a run and stays.
//
// After a crash the folder is read once, while packages are sent: half-made
// files and packages that no entry needs are removed, the others are counted.
// The file of a package is durable when it is made, its name only once
// [Spool.SyncPackages] returned, which happens before anything is sent. After a
// power cut a package may be missing, and is made again.
package spool
