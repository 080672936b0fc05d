// Package selfcheck holds a ledger at work to its promises: its chain of lines, its records and indexes, the journal replayed, the packages
// that wait and the receipts of kept folders.
//
// It changes nothing and sends nothing. It works in short transactions with pauses, so that it never takes the disk from the work. A finding
// that is about two moments of a ledger at work is looked for once more before it counts.
//
// It remembers nothing: a check that a crash ended is made again from its beginning.
package selfcheck
