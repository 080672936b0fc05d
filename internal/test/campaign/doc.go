// Package campaign kills the real program, as it is installed, hundreds of times while folders keep coming and a fifth
// of the service's answers are faulty, and then holds everything that was dropped against what the service has.
//
// It holds nothing but tests, and the program knows nothing of it. A process dies at a random moment; at an exact point
// of a call to the service, which the service's stand-in chooses; or right before an exact system call, by which it
// would change the disk or write to a connection: a seccomp filter hands each of them to the test, which lets it pass or
// kills. After such a death the power may be cut as well: then what was never synced is taken back, all of it or part
// of it, torn where it may tear. What comes up again may die in its own recovery.
//
// Between two lives every promise is checked on a copy of the ledger. At the end, faults over, everything must be
// through: each document archived exactly once with the bytes that were dropped, what was faulty given back, what was
// kept or moved unchanged, and memory and descriptors where they were. A campaign in which the deaths hit nothing, or
// some class of faults never fired, fails as vacuous.
package campaign
