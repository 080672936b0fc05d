// Package simulation runs the whole of vaultd in one process, on virtual time, against the
// emulated service, and makes things go wrong: a [World] holds the drop folders, the
// state directory, the service and the clock, drops folders, restarts the daemon in
// every way a daemon ends, and at the end holds everything that was seen to the one
// checker, [proof.Replay].
//
// It never asserts what a run should have looked like: a run is dropped, driven, left
// to calm down and checked, and one in which nothing went wrong although it was to, or
// little was finished, fails as vacuous. Nothing in it is a stand-in but the service:
// ledger, files and locks are real, and faults come in at the four seams that the
// program has for them: files, commits, calls and the clock. Packages that lie in the spool
// are damaged behind its back.
//
// Every second scenario also has drop folders of single PDFs, and a person who decides about those of which nobody knows
// whether they were delivered. Its dice are its own: a scenario without PDFs is what it was before.
//
// Every fifth scenario sends documents over the business network, too. What the network tells of them comes late, twice, in another order or not
// for days. Each document must end as the network said, and be there once. In two of three of these documents come in as well: the archive must have
// each once and byte for byte, and nothing of them is deleted at the network before.
//
// A [World] lives in a bubble of testing/synctest. The death of a process is played by a
// switch that all seams ask: once it is thrown nothing reaches disk or service any
// more, and whatever the dead daemon still computes is lost, as it is with a process.
//
// The exported names are more than usual because each seam, blow, end of a process and
// nature of a folder is one.
package simulation
