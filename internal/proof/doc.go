// Package proof checks a ledger against its promises. [Replay] replays the
// journal line by line and compares the result with the entries as they are
// stored. The package also makes and reads the receipt that is written beside an
// archived source.
//
// It never takes an entry's word for its own history, never repairs anything, does no I/O and renders nothing. A broken promise
// is a [Finding]: the promise's number, the key, and one sentence.
//
// It reads one consistent snapshot of committed lines and committed entries, so
// the check may run at any moment and gives the same result before and after a
// crash. Its memory grows by about a hundred bytes for each entry and each
// registration. A [Replay] that can look entries up keeps only those that were
// open at the same time, and registrations that their entries do not list any
// more.
package proof
